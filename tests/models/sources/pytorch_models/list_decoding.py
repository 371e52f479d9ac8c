"""Decoders of sequences of tokens that keep them in lists of tensors."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from tests.models.sources.exporting.inputs import exact, normal
from tests.models.sources.exporting.pytorch import Catalogue

MODELS = Catalogue()


@MODELS.exported("list_ctc", exporter="script", opset=18, cases={
    "six_steps": {"logits": normal(1, 6, 4)},
    "one_step": {"logits": normal(2, 1, 4)},
    "twenty_steps": {"logits": normal(3, 20, 4)},
    "all_blank": {"logits": exact([[5.0, 0.5, 1.0, 0.0]] * 3)},
    "one_token_repeated": {"logits": exact([[0.5, 5.0, 1.0, 0.0]] * 4)},
}, dynamic={"logits": {0: "time"}}, outputs=("tokens", "count"))
class ListCtc(nn.Module):
    """Greedy decoding of CTC: appends the best token of a step unless it is blank or that of the step before."""

    def forward(self, logits: Tensor) -> tuple[Tensor, Tensor]:
        best = logits.argmax(dim=1)
        kept = [torch.zeros(1, dtype=torch.int64)]
        previous = torch.zeros(1, dtype=torch.int64)
        for i in range(best.size(0)):
            token = best[i].unsqueeze(0)
            if bool((token != 0) & (token != previous)):
                kept.append(token)
            previous = token
        return torch.cat(kept, dim=0), torch.tensor(len(kept) - 1)


@MODELS.exported("list_ctc_ints", exporter="script", opset=16, cases={
    "six_steps": {"logits": normal(1, 6, 4)}, "one_step": {"logits": exact([[0.0, 1.0, 0.5, 0.0]])},
    "twenty_steps": {"logits": normal(3, 20, 4)},
}, dynamic={"logits": {0: "time"}}, outputs=("tokens",))
class ListCtcInts(nn.Module):
    """The same with a list of Python integers, which begins empty; ONNX Runtime joins no list that is still empty."""

    def forward(self, logits: Tensor) -> Tensor:
        best = logits.argmax(dim=1)
        kept = torch.jit.annotate(list[int], [])
        previous = 0
        for i in range(best.size(0)):
            token = int(best[i])
            if token != 0 and token != previous:
                kept.append(token)
            previous = token
        return torch.tensor(kept)


@MODELS.exported("list_beam_search", exporter="script", opset=16, cases={
    "five_steps": {"state": normal(1, 3, 6), "limit": exact(5)},
    "one_step": {"state": normal(2, 3, 6), "limit": exact(1)},
    "ten_steps": {"state": normal(3, 3, 6), "limit": exact(10)},
    "no_steps": {"state": normal(4, 3, 6), "limit": exact(0)},
}, outputs=("tokens", "scores"))
class ListBeamSearch(nn.Module):
    """Beam search with a list of histories, remade in each step, and lists of those that have ended."""

    def __init__(self) -> None:
        super().__init__()
        self.end = 3
        self.embedding = nn.Embedding(8, 6)
        self.mix = nn.Linear(12, 6)
        self.head = nn.Linear(6, 8)

    def forward(self, state: Tensor, limit: Tensor) -> tuple[Tensor, Tensor]:
        start = torch.ones(1, dtype=torch.int64)
        histories = [start, start, start]
        scores = torch.arange(3) * -0.5
        ended = [start]
        ended_scores = [torch.full((1,), -100.0)]
        for step in range(int(limit)):
            last = torch.stack([histories[0][-1], histories[1][-1], histories[2][-1]])
            state = torch.tanh(self.mix(torch.cat((self.embedding(last), state), dim=1)))
            reached = torch.log_softmax(self.head(state).view(3, 8), dim=1) + scores.unsqueeze(1)
            scores, best = reached.flatten().topk(3)
            parents = torch.div(best, 8, rounding_mode="floor")
            tokens = best % 8
            state = state[parents]
            grown = torch.jit.annotate(list[Tensor], [])
            for k in range(parents.size(0)):
                history = torch.cat((histories[int(parents[k])], tokens[k : k + 1]))
                grown.append(history)
                if bool(tokens[k] == self.end):
                    ended.append(history)
                    ended_scores.append(scores[k : k + 1] / (step + 2))
            histories = grown
        scores = torch.cat(ended_scores)
        return ended[int(scores.argmax(dim=0))], scores
