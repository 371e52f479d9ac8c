"""Recurrent layers: ONNX's operators, and cells in a scripted loop."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from tests.models.sources.exporting.inputs import normal
from tests.models.sources.exporting.pytorch import Catalogue
from tests.models.sources.real_models.weights import steady_weights

MODELS = Catalogue(steady_weights)

INPUT, HIDDEN, TIME = 256, 256, 200
SEQUENCE = {"one_of_200": {"x": normal(1, TIME, 1, INPUT)}}
BATCH_AND_TIME = {"x": {0: "time", 1: "batch"}}


@MODELS.exported("lstm", exporter="trace", opset=17, cases=SEQUENCE, dynamic=BATCH_AND_TIME)
class Lstm(nn.Module):
    """Two bidirectional LSTM layers and a matrix product."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.LSTM(INPUT, HIDDEN, num_layers=2, bidirectional=True)
        self.last = nn.Linear(2 * HIDDEN, 1000)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.layers(x)[0])


@MODELS.exported("gru", exporter="trace", opset=17, cases=SEQUENCE, dynamic=BATCH_AND_TIME)
class Gru(nn.Module):
    """Two GRU layers and a matrix product."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.GRU(INPUT, HIDDEN, num_layers=2)
        self.last = nn.Linear(HIDDEN, 1000)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.layers(x)[0])


@MODELS.exported("lstm_cell_loop", exporter="script", opset=17, cases=SEQUENCE, dynamic=BATCH_AND_TIME)
class LstmLoop(nn.Module):
    """An LSTM cell written out in a scripted loop over time."""

    def __init__(self) -> None:
        super().__init__()
        self.inputs = nn.Linear(INPUT, 4 * HIDDEN)
        self.states = nn.Linear(HIDDEN, 4 * HIDDEN, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        h = torch.zeros(x.size(1), 256)
        c = torch.zeros(x.size(1), 256)
        rows = []
        for i in range(x.size(0)):
            gates = self.inputs(x[i]) + self.states(h)
            i_gate, f_gate, g_gate, o_gate = gates.chunk(4, 1)
            c = torch.sigmoid(f_gate) * c + torch.sigmoid(i_gate) * torch.tanh(g_gate)
            h = torch.sigmoid(o_gate) * torch.tanh(c)
            rows.append(h)
        return torch.stack(rows)


@MODELS.exported("gru_cell_loop", exporter="script", opset=17, cases=SEQUENCE, dynamic=BATCH_AND_TIME)
class GruLoop(nn.Module):
    """A GRU cell written out in a scripted loop over time."""

    def __init__(self) -> None:
        super().__init__()
        self.inputs = nn.Linear(INPUT, 3 * HIDDEN)
        self.states = nn.Linear(HIDDEN, 3 * HIDDEN)

    def forward(self, x: Tensor) -> Tensor:
        h = torch.zeros(x.size(1), 256)
        rows = []
        for i in range(x.size(0)):
            r_in, z_in, n_in = self.inputs(x[i]).chunk(3, 1)
            r_state, z_state, n_state = self.states(h).chunk(3, 1)
            z = torch.sigmoid(z_in + z_state)
            n = torch.tanh(n_in + torch.sigmoid(r_in + r_state) * n_state)
            h = n + z * (h - n)
            rows.append(h)
        return torch.stack(rows)


@MODELS.exported("lstm_cell_growing", exporter="script", opset=17, cases=SEQUENCE, dynamic=BATCH_AND_TIME)
class LstmGrowing(nn.Module):
    """An LSTM cell in a scripted loop that concatenates its result to those before it."""

    def __init__(self) -> None:
        super().__init__()
        self.inputs = nn.Linear(INPUT, 4 * HIDDEN)
        self.states = nn.Linear(HIDDEN, 4 * HIDDEN, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        h = torch.zeros(x.size(1), 256)
        c = torch.zeros(x.size(1), 256)
        rows = x[:0]
        for i in range(x.size(0)):
            i_gate, f_gate, g_gate, o_gate = (self.inputs(x[i]) + self.states(h)).chunk(4, 1)
            c = torch.sigmoid(f_gate) * c + torch.sigmoid(i_gate) * torch.tanh(g_gate)
            h = torch.sigmoid(o_gate) * torch.tanh(c)
            rows = torch.cat([rows, h.unsqueeze(0)])
        return rows
