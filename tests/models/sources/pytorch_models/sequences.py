"""Lists of tensors: TorchScript writes those of Python's control flow with the sequence operators of ONNX."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from tests.models.sources.exporting.inputs import exact, normal
from tests.models.sources.exporting.pytorch import Catalogue

MODELS = Catalogue()


@MODELS.exported("list_append", exporter="script", opset=11, cases={
    "four_trips": {"x": normal(1, 2, 3), "count": exact(4)}, "one_trip": {"x": normal(2, 1, 3), "count": exact(1)},
    "nine_trips": {"x": normal(3, 5, 3), "count": exact(9)},
}, dynamic={"x": {0: "batch"}})
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


@MODELS.exported("list_append_break", exporter="script", opset=17, cases={
    "breaks_at_third": {"x": exact([[1.0, 0.5], [0.5, 0.25], [2.0, 1.0], [9.0, 9.0]]), "limit": exact(3.0)},
    "breaks_at_first": {"x": exact([[1.0, 0.5], [0.5, 0.25]]), "limit": exact(-1.0)},
    "runs_to_the_end": {"x": normal(1, 6, 2), "limit": exact(1000.0)},
}, dynamic={"x": {0: "rows"}})
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


@MODELS.exported("list_split", exporter="script", opset=13, cases={
    "three_parts": {"x": normal(1, 6, 3)}, "one_part": {"x": normal(2, 2, 3)}, "uneven_parts": {"x": normal(3, 7, 3)},
}, dynamic={"x": {0: "rows"}})
class ListSplit(nn.Module):
    """Splits x into parts of two rows, as many as there are, and adds up what each of them gives."""

    def forward(self, x: Tensor) -> Tensor:
        total = torch.zeros(3)
        for part in torch.split(x, 2):
            total = torch.tanh(total + part.sum(dim=0))
        return total


@MODELS.exported("list_index", exporter="script", opset=20, cases={
    "three_rounds": {"x": normal(1, 4), "count": exact(3)}, "no_rounds": {"x": normal(2, 4), "count": exact(0)},
    "seven_rounds": {"x": normal(3, 4), "count": exact(7)},
}, outputs=("last", "length"))
class ListIndex(nn.Module):
    """Reads the last two elements of a growing list in each trip, by index, and returns its length too."""

    def forward(self, x: Tensor, count: Tensor) -> tuple[Tensor, Tensor]:
        states = [x, x * 0.5]
        for i in range(int(count)):
            states.append(states[i] - states[i + 1])
        return states[-1], torch.tensor(len(states))


@MODELS.exported("list_append_if", exporter="script", opset=14, cases={
    "some_rows": {"x": normal(1, 6, 3), "limit": exact(0.0)},
    "all_rows": {"x": normal(2, 4, 3), "limit": exact(-100.0)},
    "no_row": {"x": normal(3, 5, 3), "limit": exact(100.0)},
    "one_row": {"x": normal(4, 1, 3), "limit": exact(-50.0)},
}, dynamic={"x": {0: "rows"}})
class ListAppendIf(nn.Module):
    """Appends a row to a list only if its sum is above a limit, and stacks the list."""

    def forward(self, x: Tensor, limit: Tensor) -> Tensor:
        rows = [torch.zeros(3)]
        for i in range(x.size(0)):
            row = x[i]
            if bool(row.sum() > limit):
                rows.append(torch.tanh(row))
        return torch.stack(rows, dim=0)


@MODELS.exported("list_cat_ragged", exporter="script", opset=16, cases={
    "three_pieces": {"x": normal(1, 5, 2), "lengths": exact([2, 5, 1])},
    "one_piece": {"x": normal(2, 4, 2), "lengths": exact([3])},
    "empty_pieces": {"x": normal(3, 6, 2), "lengths": exact([0, 6, 0, 2])},
}, dynamic={"x": {0: "time"}, "lengths": {0: "batch"}})
class ListCatRagged(nn.Module):
    """Appends pieces of given lengths to a list and joins them."""

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        pieces = []
        for i in range(lengths.size(0)):
            pieces.append(x[: int(lengths[i])] * (i + 1))
        return torch.cat(pieces, dim=0)


@MODELS.exported("list_unbind", exporter="script", opset=12, cases={
    "four_steps": {"x": normal(1, 4, 2, 3)}, "one_step": {"x": normal(2, 1, 2, 3)},
    "nine_steps": {"x": normal(3, 9, 2, 3)},
}, dynamic={"x": {0: "time"}}, outputs=("states", "last"))
class ListUnbind(nn.Module):
    """A recurrent cell over the steps that unbind gives; the exporter writes a split of 1 without the axis."""

    def __init__(self) -> None:
        super().__init__()
        self.input = nn.Linear(3, 4)
        self.recurrent = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        state = torch.zeros(x.size(1), 4)
        states = []
        for step in torch.unbind(x, dim=0):
            state = torch.tanh(self.input(step) + self.recurrent(state))
            states.append(state)
        return torch.stack(states, dim=0), state


@MODELS.exported("list_split_sizes", exporter="script", opset=13, cases={
    "three_parts": {"x": normal(1, 6, 3), "first": exact(2), "second": exact(1)},
    "two_empty_parts": {"x": normal(2, 4, 3), "first": exact(0), "second": exact(4)},
    "long_parts": {"x": normal(3, 11, 3), "first": exact(5), "second": exact(2)},
}, dynamic={"x": {0: "rows"}})
class ListSplitSizes(nn.Module):
    """Splits x into three parts of sizes known at run time, and joins them in another order."""

    def forward(self, x: Tensor, first: Tensor, second: Tensor) -> Tensor:
        one, two = int(first), int(second)
        parts = torch.split_with_sizes(x, [one, two, x.size(0) - one - two], dim=0)
        return torch.cat((parts[2] * 2, parts[0] + 1, parts[1]), dim=0)


@MODELS.exported("list_split_loop", exporter="script", opset=15, cases={
    "two_parts": {"x": normal(1, 6, 3), "first": exact(2)}, "empty_part": {"x": normal(2, 4, 3), "first": exact(0)},
    "long_parts": {"x": normal(3, 11, 3), "first": exact(5)},
}, dynamic={"x": {0: "rows"}})
class ListSplitLoop(nn.Module):
    """Loops over two parts of sizes known at run time."""

    def forward(self, x: Tensor, first: Tensor) -> Tensor:
        one = int(first)
        total = torch.zeros(3)
        for part in torch.split_with_sizes(x, [one, x.size(0) - one], dim=0):
            total = total * 0.5 + part.sum(dim=0)
        return total


@MODELS.exported("list_chunk", exporter="script", opset=17, cases={
    "three_wide": {"x": normal(1, 2, 6)}, "four_wide": {"x": normal(2, 3, 8)}, "six_wide": {"x": normal(3, 1, 12)},
}, dynamic={"x": {0: "batch", 1: "width"}})
class ListChunk(nn.Module):
    """Two halves of x, one of them a gate to the other; their width is known at run time."""

    def forward(self, x: Tensor) -> Tensor:
        parts = torch.chunk(x, 2, dim=1)
        return torch.sigmoid(parts[0]) * parts[1]


@MODELS.exported("list_chunk_loop", exporter="script", opset=11, cases={
    "even_parts": {"x": normal(1, 2, 6)}, "last_is_narrower": {"x": normal(2, 3, 7)},
    "wide_parts": {"x": normal(3, 1, 12)},
}, dynamic={"x": {0: "batch", 1: "width"}})
class ListChunkLoop(nn.Module):
    """Loops over three chunks of x; the last one may be narrower."""

    def forward(self, x: Tensor) -> Tensor:
        total = torch.zeros(x.size(0))
        for part in torch.chunk(x, 3, dim=1):
            total = torch.tanh(total + part.sum(dim=1))
        return total


@MODELS.exported("list_pool", exporter="script", opset=18, cases={
    "two_boxes": {"x": normal(1, 3, 6, 8), "boxes": exact([[0, 2, 1, 4], [3, 6, 0, 8]])},
    "one_box": {"x": normal(2, 3, 4, 4), "boxes": exact([[1, 4, 2, 3]])},
    "four_boxes": {"x": normal(3, 3, 5, 7),
                   "boxes": exact([[0, 5, 0, 7], [4, 5, 6, 7], [1, 2, 0, 5], [2, 5, 3, 5]])},
}, dynamic={"x": {1: "height", 2: "width"}, "boxes": {0: "boxes"}})
class ListPool(nn.Module):
    """Cuts boxes out of a feature map into a list, then pools each element: they differ in height and in width."""

    def forward(self, x: Tensor, boxes: Tensor) -> Tensor:
        regions = []
        for i in range(boxes.size(0)):
            box = boxes[i]
            regions.append(x[:, int(box[0]) : int(box[1]), int(box[2]) : int(box[3])])
        pooled = []
        for region in regions:
            pooled.append(region.amax(dim=(1, 2)))
        return torch.stack(pooled, dim=0)


@MODELS.exported("list_pool_segments", exporter="script", opset=13, cases={
    "two_segments": {"x": normal(1, 7, 4), "lengths": exact([3, 4])},
    "one_segment": {"x": normal(2, 3, 4), "lengths": exact([3])},
    "four_segments": {"x": normal(3, 12, 4), "lengths": exact([1, 5, 2, 4])},
}, dynamic={"x": {0: "time"}, "lengths": {0: "batch"}})
class ListPoolSegments(nn.Module):
    """Mean and maximum of segments that follow each other, of given lengths, appended to a list and stacked."""

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        pooled = []
        start = 0
        for i in range(lengths.size(0)):
            end = start + int(lengths[i])
            part = x[start:end]
            pooled.append(torch.cat((part.mean(dim=0), part.max(dim=0)[0])))
            start = end
        return torch.stack(pooled, dim=0)


@MODELS.exported("list_hstack_dynamo", exporter="dynamo", opset=20, cases={
    "four_rows": {"x": normal(1, 4, 6)}, "three_rows": {"x": normal(2, 3, 6)}, "nine_rows": {"x": normal(3, 9, 6)},
}, dynamic={"x": {0: "rows"}}, outputs=("beside", "behind", "columns"))
class ListHstack(nn.Module):
    """hstack, dstack and column_stack, which bring each element of a list to its rank first: a map over the list."""

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        beside = torch.hstack([x, x[:, :2] * 2, x.sum(dim=1, keepdim=True)])
        behind = torch.dstack([x, x * 2])
        return beside, behind, torch.column_stack([x, x.sum(dim=1)])
