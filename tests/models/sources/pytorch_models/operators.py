"""The control-flow operators of PyTorch: cond, while_loop, scan."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.while_loop import while_loop

from tests.models.sources.exporting.inputs import exact, normal
from tests.models.sources.exporting.pytorch import Catalogue

MODELS = Catalogue()


@MODELS.exported("cond_dynamo", exporter="dynamo", opset=18, cases={
    "then": {"x": exact([[1.0, 2.0, -0.5, 0.25], [0.5, 0.5, 1.5, -1.0]])},
    "else": {"x": exact([[-1.0, 2.0, -3.5, 0.25], [0.5, 0.5, -1.5, -1.0]])},
    "else_one_row": {"x": exact([[-1.0, -2.0, -0.5, 0.25]])},
}, dynamic={"x": {0: "batch"}})
class Cond(nn.Module):
    """torch.cond: one of two linear layers by the sign of the sum of x; the branches capture x and the weights."""

    def __init__(self) -> None:
        super().__init__()
        self.positive = nn.Linear(4, 3)
        self.negative = nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        return torch.cond(x.sum() > 0, lambda x: self.positive(x), lambda x: torch.tanh(self.negative(x)), (x,))


@MODELS.exported("while_dynamo", exporter="dynamo", opset=21, cases={
    "three_trips": {"x": normal(1, 2, 4), "count": exact(3)},
    "one_trip": {"x": normal(2, 1, 4), "count": exact(1)},
    "never_entered": {"x": normal(3, 3, 4), "count": exact(0)},
    "many_trips": {"x": normal(4, 2, 4), "count": exact(40)},
}, dynamic={"x": {0: "batch"}})
class WhileLoop(nn.Module):
    """The while_loop operator: no trip count, a counter among the carried values, and a captured limit."""

    def forward(self, x: Tensor, count: Tensor) -> Tensor:
        start = torch.zeros((), dtype=torch.int64)
        return while_loop(lambda i, x: i < count, lambda i, x: (i + 1, x * 0.5 + 1), (start, x))[1]


SCANS = {"five_steps": {"h": normal(1, 2, 4), "xs": normal(2, 5, 2, 4)},
         "one_step": {"h": normal(3, 2, 4), "xs": normal(4, 1, 2, 4)},
         "twelve_steps": {"h": normal(5, 2, 4), "xs": normal(6, 12, 2, 4)}}


@MODELS.exported("scan_dynamo", exporter="dynamo", opset=20, cases=SCANS, dynamic={"xs": {0: "time"}},
                 outputs=("last", "ys"))
class Scan(nn.Module):
    """The scan operator: one recurrent layer over the first axis of xs, with a scan output."""

    def __init__(self, reverse: bool = False) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.reverse = reverse

    def forward(self, h: Tensor, xs: Tensor) -> tuple[Tensor, Tensor]:
        def step(h: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
            h = torch.tanh(self.linear(h) + x)
            return h, h * 2

        return scan(step, h, xs, dim=0, reverse=self.reverse)


@MODELS.exported("scan_reverse_dynamo", exporter="dynamo", opset=18, cases=SCANS, dynamic={"xs": {0: "time"}},
                 outputs=("last", "ys"))
def scan_reverse() -> nn.Module:
    """The scan operator running backwards: the exporter reverses xs before an ordinary Scan, and ys after it."""
    return Scan(reverse=True)
