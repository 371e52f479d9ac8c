"""Lists whose elements are taken out, put in front or replaced in loops."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from tests.models.sources.exporting.inputs import exact, normal
from tests.models.sources.exporting.pytorch import Catalogue

MODELS = Catalogue()

CASES = {
    "three_trips": {"x": normal(1, 4), "count": exact(3)},
    "no_trips": {"x": normal(2, 4), "count": exact(0)},
    "one_trip": {"x": normal(3, 4), "count": exact(1)},
    "seven_trips": {"x": normal(4, 4), "count": exact(7)},
}


@MODELS.exported("list_window", exporter="script", opset=17, cases=CASES)
class ListWindow(nn.Module):
    """A window of three elements that moves: appends one, removes the first."""

    def forward(self, x: Tensor, count: Tensor) -> Tensor:
        window = [x, x + 1, x + 2]
        total = torch.zeros(4)
        for _ in range(int(count)):
            window.append(window[0] * 0.5 - window[2])
            window.pop(0)
            total = total + torch.stack([window[0], window[1], window[2]]).mean(dim=0)
        return total


@MODELS.exported("list_assign", exporter="script", opset=14, cases=CASES)
class ListAssign(nn.Module):
    """Three elements, each of which is replaced in turn."""

    def forward(self, x: Tensor, count: Tensor) -> Tensor:
        slots = [x, x + 1, x + 2]
        for i in range(int(count)):
            k = i % 3
            slots[k] = torch.tanh(slots[k] + slots[(k + 1) % 3])
        return torch.cat(slots)


@MODELS.exported("list_worklist", exporter="script", opset=16, cases=CASES)
class ListWorklist(nn.Module):
    """Takes the last element of a list and may append two others, until none is left or a limit is reached."""

    def forward(self, x: Tensor, count: Tensor) -> Tensor:
        todo = [x]
        total = torch.zeros(4)
        steps = 0
        while len(todo) > 0 and steps < int(count) * 3:
            item = todo.pop()
            total = total + item
            steps = steps + 1
            if bool(item.abs().sum() > 0.5):
                todo.append(item * 0.4)
                todo.append(item * 0.3)
        return total
