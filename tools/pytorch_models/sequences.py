"""Lists of tensors in Python's control flow: TorchScript writes them with the sequence operators of ONNX."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from tools.exporting.inputs import exact, normal
from tools.exporting.pytorch import Catalogue

MODELS = Catalogue()


@MODELS.exported(
    "list_append",
    exporter="script",
    opset=11,
    cases={
        "four_trips": {"x": normal(1, 2, 3), "count": exact(4)},
        "one_trip": {"x": normal(2, 1, 3), "count": exact(1)},
        "nine_trips": {"x": normal(3, 5, 3), "count": exact(9)},
    },
    dynamic={"x": {0: "batch"}},
)
class ListAppend(nn.Module):
    """Appends a state to a list in each trip and stacks the list."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 3)

    def forward(self, x: Tensor, count: Tensor) -> Tensor:
        states = []
        for _ in range(int(count)):
            x = torch.tanh(self.linear(x))
            states.append(x)
        return torch.stack(states, dim=1)


@MODELS.exported(
    "list_append_break",
    exporter="script",
    opset=17,
    cases={
        "breaks_at_third": {"x": exact([[1.0, 0.5], [0.5, 0.25], [2.0, 1.0], [9.0, 9.0]]), "limit": exact(3.0)},
        "breaks_at_first": {"x": exact([[1.0, 0.5], [0.5, 0.25]]), "limit": exact(-1.0)},
        "runs_to_the_end": {"x": normal(1, 6, 2), "limit": exact(1000.0)},
    },
    dynamic={"x": {0: "rows"}},
)
class ListAppendBreak(nn.Module):
    """Appends running totals of different length to a list until a limit is reached, and joins them."""

    def forward(self, x: Tensor, limit: Tensor) -> Tensor:
        parts = []
        for i in range(x.size(0)):
            total = x[: i + 1].sum(dim=1)
            parts.append(total)
            if bool(total.sum() > limit):
                break
        return torch.cat(parts, dim=0)


@MODELS.exported(
    "list_split",
    exporter="script",
    opset=13,
    cases={
        "three_parts": {"x": normal(1, 6, 3)},
        "one_part": {"x": normal(2, 2, 3)},
        "uneven_parts": {"x": normal(3, 7, 3)},
    },
    dynamic={"x": {0: "rows"}},
)
class ListSplit(nn.Module):
    """Splits x into parts of two rows, as many as there are, and adds up what each of them gives."""

    def forward(self, x: Tensor) -> Tensor:
        total = torch.zeros(3)
        for part in torch.split(x, 2):
            total = torch.tanh(total + part.sum(dim=0))
        return total


@MODELS.exported(
    "list_index",
    exporter="script",
    opset=20,
    cases={
        "three_rounds": {"x": normal(1, 4), "count": exact(3)},
        "no_rounds": {"x": normal(2, 4), "count": exact(0)},
        "seven_rounds": {"x": normal(3, 4), "count": exact(7)},
    },
    outputs=("last", "length"),
)
class ListIndex(nn.Module):
    """Reads the last two elements of a growing list in each trip, by index, and returns its length too."""

    def forward(self, x: Tensor, count: Tensor) -> tuple[Tensor, Tensor]:
        states = [x, x * 0.5]
        for i in range(int(count)):
            states.append(states[i] - states[i + 1])
        return states[-1], torch.tensor(len(states))
