"""The two language models of ELMo over one softmax."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from bertsmith.classic.neural.softmax import LinearSoftmax, TailedSoftmax
from bertsmith.models.word_encoders.elmo_network import ElmoNetwork
from bertsmith.nn.loss import LossSum

FORWARD_BACKWARD = ("forward", "backward")


class BidirectionalLm(nn.Module):
    """An ELMo network and the softmax that both directions share."""

    def __init__(
        self, network: ElmoNetwork, softmax: LinearSoftmax | TailedSoftmax, *, dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.network = network
        self.softmax = softmax
        self.dropout = dropout

    def forward(
        self,
        rows: Tensor,
        places: Tensor,
        lengths: Sequence[int],
        classes: Tensor,
        noise: Tensor | None = None,
    ) -> list[LossSum]:
        """(U, length), (L, B), classes (L, B) -> the loss of each direction; exact unless training.

        Place t predicts the class of place t + 1 forward, of place t - 1 backward.
        """
        found = []
        for hidden, targets in self.predictions(rows, places, lengths, classes):
            if self.training:
                found.append(self.softmax.loss(hidden, targets, noise))
            else:
                found.append(LossSum(-self.softmax.scores(hidden, targets).sum(), len(targets)))
        return found

    def predictions(
        self, rows: Tensor, places: Tensor, lengths: Sequence[int], classes: Tensor
    ) -> list[tuple[Tensor, Tensor]]:
        """For each direction the top rows that predict (N, P) and their classes (N,).

        In order of places, then of lines.
        """
        _, layers, _ = self.network(rows, places, lengths, dropout=self.dropout)
        sizes = torch.tensor(lengths, device=places.device)[None, :]
        at = torch.arange(len(places), device=places.device)[:, None]
        before_last = at < sizes - 1
        after_first = (at > 0) & (at < sizes)
        return [
            (layers[0][-1][before_last], classes.roll(-1, 0)[before_last]),
            (layers[1][-1][after_first], classes.roll(1, 0)[after_first]),
        ]
