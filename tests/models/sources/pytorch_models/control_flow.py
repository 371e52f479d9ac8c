"""Python's own control flow, kept by TorchScript as Loop and If."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from tests.models.sources.exporting.inputs import Data, exact, normal
from tests.models.sources.exporting.pytorch import Catalogue

MODELS = Catalogue()


@MODELS.exported("while_doubling", exporter="script", opset=11, cases={
    "few_trips": {"x": exact([0.5, -1.0, 0.25]), "limit": exact(9.0)},
    "many_trips": {"x": exact([0.1, 0.2]), "limit": exact(1000.0)},
    "never_entered": {"x": normal(2, 5), "limit": exact(0.0)},
}, dynamic={"x": {0: "n"}})
class WhileDoubling(nn.Module):
    """Doubles x until the sum of its magnitudes reaches a limit."""

    def forward(self, x: Tensor, limit: Tensor) -> Tensor:
        while bool(x.abs().sum() < limit):
            x = x * 2 + 0.25
        return x


@MODELS.exported("while_collatz", exporter="script", opset=14, cases={
    "nine_trips": {"n": exact(12)}, "one_trip": {"n": exact(2)}, "never_entered": {"n": exact(1)},
    "many_trips": {"n": exact(27)},
}, outputs=("steps", "peak"))
class WhileCollatz(nn.Module):
    """Counts the steps of the Collatz sequence of n and finds its peak: an If in a while loop, all scalars of int64."""

    def forward(self, n: Tensor) -> tuple[Tensor, Tensor]:
        steps = torch.zeros_like(n)
        peak = n
        while bool(n > 1):
            if bool(n % 2 == 0):
                n = torch.div(n, 2, rounding_mode="floor")
            else:
                n = 3 * n + 1
            peak = torch.maximum(peak, n)
            steps = steps + 1
        return steps, peak


@MODELS.exported(
    "for_fixed", exporter="script", opset=13,
    cases={"two_rows": {"x": normal(1, 2, 4)}, "one_row": {"x": normal(2, 1, 4)}, "five_rows": {"x": normal(3, 5, 4)}},
    dynamic={"x": {0: "batch"}},
)
class ForFixed(nn.Module):
    """A hundred trips through one linear layer; TorchScript unrolls by eight: a loop of 12 trips, then one of 4."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        for i in range(100):
            x = torch.tanh(self.linear(x)) + 0.01 * i
        return x


@MODELS.exported("for_trip_count", exporter="script", opset=17, cases={
    "three_trips": {"x": normal(1, 2, 4), "count": exact(3)},
    "one_trip": {"x": normal(2, 1, 4), "count": exact(1)},
    "no_trips": {"x": normal(3, 3, 4), "count": exact(0)},
    "many_trips": {"x": normal(4, 2, 4), "count": exact(40)},
}, dynamic={"x": {0: "batch"}})
class ForTripCount(nn.Module):
    """A for loop whose trip count is an input, and whose body uses the iteration number."""

    def forward(self, x: Tensor, count: Tensor) -> Tensor:
        for i in range(int(count)):
            x = x * 0.5 + i
        return x


@MODELS.exported("for_growing", exporter="script", opset=15, cases={
    "three_trips": {"x": normal(1, 1, 4), "count": exact(3)}, "one_trip": {"x": normal(2, 1, 4), "count": exact(1)},
    "no_trips": {"x": normal(3, 1, 4), "count": exact(0)},
})
class ForGrowing(nn.Module):
    """Carries a tensor that grows by one row in each trip."""

    def forward(self, x: Tensor, count: Tensor) -> Tensor:
        rows = x
        for _ in range(int(count)):
            rows = torch.cat((rows, rows[-1:] * 0.5 + x), dim=0)
        return rows


@MODELS.exported("for_break", exporter="script", opset=16, cases={
    "breaks_at_third": {"x": exact([[1.0, 0.5], [0.5, 0.25], [2.0, 1.0], [9.0, 9.0]]), "limit": exact(3.0)},
    "breaks_at_first": {"x": exact([[1.0, 0.5], [0.5, 0.25]]), "limit": exact(-1.0)},
    "runs_to_the_end": {"x": normal(1, 6, 2), "limit": exact(1000.0)},
    "no_rows": {"x": Data((0, 2), "float32", values=()), "limit": exact(3.0)},
}, dynamic={"x": {0: "rows"}}, outputs=("total", "used"))
class ForBreak(nn.Module):
    """Adds up rows of x until their sum exceeds a limit, and counts the rows it used."""

    def forward(self, x: Tensor, limit: Tensor) -> tuple[Tensor, Tensor]:
        total = torch.zeros(2)
        used = torch.zeros(1, dtype=torch.int64)
        for i in range(x.size(0)):
            total = total + x[i]
            used = used + 1
            if bool(total.sum() > limit):
                break
        return total, used


@MODELS.exported("if_tensor", exporter="script", opset=11, cases={
    "then": {"x": exact([[1.0, 2.0], [-0.5, 0.25]])}, "else": {"x": exact([[-1.0, 2.0], [-3.5, 0.25]])},
    "else_at_zero": {"x": exact([[0.0, 0.0], [0.0, 0.0], [0.0, 0.0]])},
}, dynamic={"x": {0: "batch"}})
class IfTensor(nn.Module):
    """Takes a branch by the sign of the sum of x."""

    def forward(self, x: Tensor) -> Tensor:
        if bool(x.sum() > 0):
            y = x * 2
        else:
            y = torch.relu(-x)
        return y + 1


@MODELS.exported("if_shapes", exporter="script", opset=13, cases={
    "narrow": {"x": normal(1, 2, 4), "narrow": exact(True)}, "wide": {"x": normal(2, 2, 4), "narrow": exact(False)},
    "wide_one_row": {"x": normal(3, 1, 4), "narrow": exact(False)},
}, dynamic={"x": {0: "batch"}})
class IfShapes(nn.Module):
    """Branches of different shape: two columns of x, or x twice side by side."""

    def forward(self, x: Tensor, narrow: Tensor) -> Tensor:
        if bool(narrow):
            y = x[:, :2]
        else:
            y = torch.cat((x, x), dim=1)
        return y + 1


@MODELS.exported("loop_if_loop", exporter="script", opset=18, cases={
    "both_branches": {"x": exact([[0.25, 0.35], [0.1, 0.5]]), "outer": exact(4), "inner": exact(3)},
    "else_only": {"x": exact([[5.25, 6.0]]), "outer": exact(3), "inner": exact(2)},
    "no_inner_trips": {"x": exact([[0.25, 0.35]]), "outer": exact(2), "inner": exact(0)},
    "no_outer_trips": {"x": normal(1, 2, 2), "outer": exact(0), "inner": exact(3)},
}, dynamic={"x": {0: "batch"}})
class LoopIfLoop(nn.Module):
    """A loop in an if in a loop; the innermost body captures an input of the model and a weight."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(2))

    def forward(self, x: Tensor, outer: Tensor, inner: Tensor) -> Tensor:
        start = x
        for _ in range(int(outer)):
            if bool(x.mean() < 1):
                for j in range(int(inner)):
                    x = x + 0.5 * float(j) + 0.01 * start * self.weight
            else:
                x = x - 1
        return x
