"""Decoders of sequences of tokens: greedy ones, and beam search."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from tests.models.sources.exporting.inputs import exact, normal
from tests.models.sources.exporting.pytorch import Catalogue

MODELS = Catalogue()


@MODELS.exported("decoder", exporter="script", opset=17, cases={
    "ends_late": {"state": normal(9, 1, 6), "limit": exact(20)},
    "ends_early": {"state": normal(11, 1, 6), "limit": exact(20)},
    "cut_short": {"state": normal(9, 1, 6), "limit": exact(2)},
    "no_trips": {"state": normal(9, 1, 6), "limit": exact(0)},
}, outputs=("tokens", "last_state"))
class Decoder(nn.Module):
    """Greedy decoding: feeds each token back and appends it, until the end token or a limit of tokens."""

    def __init__(self) -> None:
        super().__init__()
        self.end = 3
        self.embedding = nn.Embedding(8, 6)
        self.mix = nn.Linear(12, 6)
        self.head = nn.Linear(6, 8)

    def forward(self, state: Tensor, limit: Tensor) -> tuple[Tensor, Tensor]:
        token = torch.ones(1, dtype=torch.int64)
        tokens = token
        for _ in range(int(limit)):
            state = torch.tanh(self.mix(torch.cat((self.embedding(token), state), dim=1)))
            token = self.head(state).argmax(dim=1)
            tokens = torch.cat((tokens, token), dim=0)
            if bool(token[0] == self.end):
                break
        return tokens, state


@MODELS.exported("greedy_attention", exporter="script", opset=14, cases={
    "long_memory": {"memory": normal(3, 5, 6), "limit": exact(12)},
    "short_memory": {"memory": normal(4, 2, 6), "limit": exact(12)},
    "cut_short": {"memory": normal(3, 5, 6), "limit": exact(2)},
    "no_trips": {"memory": normal(5, 1, 6), "limit": exact(0)},
}, dynamic={"memory": {0: "time"}}, outputs=("tokens", "scores"))
class GreedyAttention(nn.Module):
    """Greedy decoding by attention over the tokens so far and a memory; tokens and their scores grow in each trip."""

    def __init__(self) -> None:
        super().__init__()
        self.end = 3
        self.embedding = nn.Embedding(8, 6)
        self.positions = nn.Embedding(16, 6)
        self.query = nn.Linear(6, 6)
        self.key = nn.Linear(6, 6)
        self.head = nn.Linear(6, 8)

    def forward(self, memory: Tensor, limit: Tensor) -> tuple[Tensor, Tensor]:
        tokens = torch.ones(1, dtype=torch.int64)
        scores = torch.zeros(0)
        for i in range(int(limit)):
            known = self.embedding(tokens) + self.positions.weight[: i + 1]
            read = torch.cat((known, memory), dim=0)
            weights = torch.softmax(torch.matmul(self.query(known[-1:]), self.key(read).t()), dim=1)
            score, token = torch.log_softmax(self.head(torch.matmul(weights, read)), dim=1).max(dim=1)
            tokens = torch.cat((tokens, token), dim=0)
            scores = torch.cat((scores, score), dim=0)
            if bool(token[0] == self.end):
                break
        return tokens, scores


@MODELS.exported("beam_step_dynamo", exporter="dynamo", opset=20, cases={
    "after_four": {"state": normal(1, 3, 6), "scores": normal(2, 3), "history": exact([[1, 5, 2, 7]] * 3)},
    "after_two": {"state": normal(3, 3, 6), "scores": normal(4, 3), "history": exact([[1, 2], [1, 4], [1, 6]])},
    "after_five": {"state": normal(5, 3, 6), "scores": normal(6, 3), "history": exact([[1, 4, 4, 6, 0]] * 3)},
}, dynamic={"history": {1: "time"}}, outputs=("new_state", "new_scores", "new_history"))
class BeamStep(nn.Module):
    """One step of beam search: the best continuations of all beams, and the histories they continue."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(8, 6)
        self.mix = nn.Linear(12, 6)
        self.head = nn.Linear(6, 8)

    def forward(self, state: Tensor, scores: Tensor, history: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        state = torch.tanh(self.mix(torch.cat((self.embedding(history[:, -1]), state), dim=1)))
        reached = torch.log_softmax(self.head(state), dim=1) + scores.unsqueeze(1)
        scores, best = reached.flatten().topk(3)
        parents = torch.div(best, 8, rounding_mode="floor")
        history = torch.cat((history[parents], (best % 8).unsqueeze(1)), dim=1)
        return state[parents], scores, history


@MODELS.exported("beam_search", exporter="script", opset=11, cases={
    "five_steps": {"state": normal(1, 3, 6), "limit": exact(5)},
    "one_step": {"state": normal(2, 3, 6), "limit": exact(1)},
    "no_steps": {"state": normal(3, 3, 6), "limit": exact(0)},
}, outputs=("tokens", "scores"))
class BeamSearch(nn.Module):
    """Beam search: repeats the step on a growing history, then returns its best row."""

    def __init__(self) -> None:
        super().__init__()
        self.step = BeamStep()

    def forward(self, state: Tensor, limit: Tensor) -> tuple[Tensor, Tensor]:
        history = torch.ones(3, 1, dtype=torch.int64)
        scores = torch.arange(3) * -0.5
        for _ in range(int(limit)):
            state, scores, history = self.step(state, scores, history)
        return history[0], scores
