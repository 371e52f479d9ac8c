"""Recurrent layers."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from tests.models.sources.exporting.inputs import exact, normal
from tests.models.sources.exporting.pytorch import Catalogue

MODELS = Catalogue()


SEQUENCES = {"two_of_six": {"x": normal(1, 2, 6, 4)}, "one_of_one": {"x": normal(2, 1, 1, 4)},
             "three_of_nine": {"x": normal(3, 3, 9, 4)}}
BATCH_AND_TIME = {"x": {0: "batch", 1: "time"}}


@MODELS.exported("lstm_dynamo", exporter="dynamo", opset=21, cases=SEQUENCES, dynamic=BATCH_AND_TIME,
                 outputs=("y", "h", "c"))
@MODELS.exported("lstm", exporter="trace", opset=11, cases=SEQUENCES, dynamic=BATCH_AND_TIME, outputs=("y", "h", "c"))
class Lstm(nn.Module):
    """nn.LSTM, one layer, batch first."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.LSTM(4, 5, batch_first=True)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        y, (h, c) = self.layer(x)
        return y, h, c


@MODELS.exported("lstm_bidirectional", exporter="trace", opset=17, cases={
    "six_of_two": {"x": normal(1, 6, 2, 4), "h0": normal(2, 4, 2, 3), "c0": normal(3, 4, 2, 3)},
    "one_of_one": {"x": normal(4, 1, 1, 4), "h0": normal(5, 4, 1, 3), "c0": normal(6, 4, 1, 3)},
    "nine_of_three": {"x": normal(7, 9, 3, 4), "h0": normal(8, 4, 3, 3), "c0": normal(9, 4, 3, 3)},
}, dynamic={"x": {0: "time", 1: "batch"}, "h0": {1: "batch"}, "c0": {1: "batch"}}, outputs=("y", "h", "c"))
class LstmBidirectional(nn.Module):
    """nn.LSTM, two bidirectional layers, time first, with initial states."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.LSTM(4, 3, num_layers=2, bidirectional=True)

    def forward(self, x: Tensor, h0: Tensor, c0: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        y, (h, c) = self.layers(x, (h0, c0))
        return y, h, c


@MODELS.exported("gru", exporter="trace", opset=14, cases=SEQUENCES, dynamic=BATCH_AND_TIME, outputs=("y", "h"))
def gru() -> nn.Module:
    """nn.GRU, bidirectional, batch first."""
    return nn.GRU(4, 5, batch_first=True, bidirectional=True)


@MODELS.exported("rnn", exporter="trace", opset=12, cases=SEQUENCES, dynamic=BATCH_AND_TIME, outputs=("y", "h"))
def rnn() -> nn.Module:
    """nn.RNN with ReLU, two layers, batch first."""
    return nn.RNN(4, 5, num_layers=2, nonlinearity="relu", batch_first=True)


@MODELS.exported("lstm_stacked", exporter="trace", opset=20, cases=SEQUENCES, dynamic=BATCH_AND_TIME,
                 outputs=("y", "h", "c"))
def lstm_stacked() -> nn.Module:
    """nn.LSTM, three layers, without biases, batch first."""
    return nn.LSTM(4, 5, num_layers=3, bias=False, batch_first=True)


@MODELS.exported("lstm_packed", exporter="trace", opset=14, cases={
    "six_and_four": {"x": normal(1, 2, 6, 4), "lengths": exact([6, 4])},
    "one_of_one": {"x": normal(2, 1, 1, 4), "lengths": exact([1])},
    "falling": {"x": normal(3, 4, 9, 4), "lengths": exact([9, 5, 5, 1])},
}, dynamic={"x": {0: "batch", 1: "time"}, "lengths": {0: "batch"}}, outputs=("y", "h", "c"))
class LstmPacked(nn.Module):
    """nn.LSTM, bidirectional, on a packed batch: each row has a length of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.LSTM(4, 3, bidirectional=True, batch_first=True)

    def forward(self, x: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        y, (h, c) = self.layer(pack_padded_sequence(x, lengths, batch_first=True))
        return pad_packed_sequence(y, batch_first=True)[0], h, c


STATES = {"two_of_six": {"x": normal(1, 2, 6, 4), "h0": normal(2, 4, 2, 3)},
          "one_of_one": {"x": normal(3, 1, 1, 4), "h0": normal(4, 4, 1, 3)},
          "three_of_nine": {"x": normal(5, 3, 9, 4), "h0": normal(6, 4, 3, 3)}}
STATE_AXES = {"x": {0: "batch", 1: "time"}, "h0": {1: "batch"}}


@MODELS.exported("gru_stacked", exporter="trace", opset=13, cases=STATES, dynamic=STATE_AXES, outputs=("y", "h"))
class GruStacked(nn.Module):
    """nn.GRU, two bidirectional layers with initial states, batch first."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.GRU(4, 3, num_layers=2, bidirectional=True, batch_first=True)

    def forward(self, x: Tensor, h0: Tensor) -> tuple[Tensor, Tensor]:
        return self.layers(x, h0)


@MODELS.exported("gru_dynamo", exporter="dynamo", opset=19, cases=SEQUENCES, dynamic=BATCH_AND_TIME, outputs=("y", "h"))
def gru_dynamo() -> nn.Module:
    """nn.GRU, one layer, batch first."""
    return nn.GRU(4, 5, batch_first=True)


@MODELS.exported("rnn_bidirectional", exporter="trace", opset=18, cases=STATES, dynamic=STATE_AXES, outputs=("y", "h"))
class RnnBidirectional(nn.Module):
    """nn.RNN with tanh, two bidirectional layers with initial states, batch first."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.RNN(4, 3, num_layers=2, bidirectional=True, batch_first=True)

    def forward(self, x: Tensor, h0: Tensor) -> tuple[Tensor, Tensor]:
        return self.layers(x, h0)
