"""Networks that read the words before a word: Bengio's window, LSTM and GRU of any depth."""

from __future__ import annotations

import math
from typing import cast

import torch
from torch import Generator, Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence

from bertsmith.classic.neural.reading import LINE_END, NeuralBatch
from bertsmith.classic.neural.softmax import LinearSoftmax, TailedSoftmax
from bertsmith.nn.loss import LossSum

State = tuple[Tensor, ...]
EMBEDDING_RANGE = 0.1


class WindowNetwork(nn.Module):
    """Bengio et al. 2003 (JMLR 3:1137): the last n - 1 words, concatenated, and a tanh layer.

    With direct connections the rows hold the concatenated words as well: a softmax over both is
    b + Wx + U tanh(d + Hx). The state is the last n - 2 words.
    """

    def __init__(
        self, classes: int, *, order: int, width: int, hidden: int, direct: bool, dropout: float
    ) -> None:
        super().__init__()
        self.embedding = nn.Embedding(classes, width)
        self.dense = nn.Linear((order - 1) * width, hidden)
        self.dropout = nn.Dropout(dropout)
        self.order = order
        self.direct = direct
        self.width = hidden + (order - 1) * width * direct

    def fresh(self, columns: int) -> State:
        """The state at the beginning of `columns` texts: (n - 2, B), nothing but line ends."""
        place = self.embedding.weight.device
        return (torch.full((self.order - 2, columns), LINE_END, device=place),)

    def forward(self, batch: NeuralBatch, state: State) -> tuple[Tensor, State]:
        """(L, B) -> rows of real places (T, D), the state after them."""
        before, length = self.order - 2, len(batch.inputs)
        ids = torch.cat([state[0], batch.inputs])  # (n - 2 + L, B)
        windows = ids.unfold(0, self.order - 1, 1)  # (L, B, n - 1)
        if batch.resets is not None:
            places = torch.arange(length, device=ids.device)[:, None]  # (L, 1)
            latest = places.where(batch.resets, -before - 1).cummax(0).values  # (L, B)
            back = torch.arange(-before, 1, device=ids.device)  # of each word of a window
            hidden = places[..., None] + back < latest[..., None]
            windows = windows.masked_fill(hidden, LINE_END)
            kept = torch.arange(length - before, length, device=ids.device)[:, None]
            ids = torch.cat([ids[: len(ids) - before], _last(ids, before, kept < latest[-1])])
        rows = self.embedding(windows[batch.real]).flatten(1)  # (T, (n - 1) E)
        rows = self.dropout(rows)
        found = self.dropout(self.dense(rows).tanh())
        if self.direct:
            found = torch.cat([found, rows], dim=1)
        return found, (ids[len(ids) - before :],)


def _last(ids: Tensor, count: int, hidden: Tensor) -> Tensor:
    return ids[len(ids) - count :].masked_fill(hidden, LINE_END)


class RecurrentNetwork(nn.Module):
    """LSTM or GRU layers with dropout between them (Zaremba et al. 2014, arXiv:1409.2329).

    The state is that of torch: hidden, for an LSTM the cells too, each (layers, B, D).
    """

    def __init__(
        self,
        classes: int,
        cell: type[nn.LSTM] | type[nn.GRU],
        *,
        width: int,
        hidden: int,
        layers: int,
        dropout: float,
    ) -> None:
        super().__init__()
        self.embedding = nn.Embedding(classes, width)
        between = dropout if layers > 1 else 0.0  # torch warns of dropout that has no place
        self.cell: nn.LSTM | nn.GRU = cell(width, hidden, num_layers=layers, dropout=between)
        self.dropout = nn.Dropout(dropout)
        self.width = hidden

    def fresh(self, columns: int) -> State:
        """The state at the beginning of `columns` texts: zeros."""
        shape = (self.cell.num_layers, columns, self.cell.hidden_size)
        one = self.embedding.weight.new_zeros(shape)
        return (one, one.clone()) if isinstance(self.cell, nn.LSTM) else (one,)

    def forward(self, batch: NeuralBatch, state: State) -> tuple[Tensor, State]:
        """(L, B) -> rows of real places (T, D), the state after them."""
        inputs = self.dropout(self.embedding(batch.inputs))  # (L, B, E)
        if batch.resets is not None:
            found, state = self._in_pieces(inputs, batch.resets, state)
            rows = found[batch.real]
        elif bool(batch.real.all()):
            found, state = self._pass(inputs, state)
            rows = found.flatten(0, 1)
        else:  # longest first: the rows of a packed sequence are in the order of real places
            packed = pack_padded_sequence(inputs, batch.real.sum(0).cpu())
            found, state = self._pass(packed, state)
            rows = found.data
        return self.dropout(rows), state

    def _in_pieces(self, inputs: Tensor, resets: Tensor, state: State) -> tuple[Tensor, State]:
        """One pass between two places where the state of some text is reset."""
        starts = sorted({0, *resets.any(1).nonzero()[:, 0].tolist()})
        parts = []
        for start, end in zip(starts, [*starts[1:], len(inputs)], strict=True):
            keep = ~resets[start][None, :, None]
            found, state = self._pass(inputs[start:end], tuple(one * keep for one in state))
            parts.append(found)
        return torch.cat(parts), state

    def _pass(self, inputs: Tensor | PackedSequence, state: State) -> tuple[Tensor, State]:
        if isinstance(self.cell, nn.LSTM):
            found, after = self.cell(inputs, state)
            return found, after
        found, last = self.cell(inputs, state[0])
        return found, (last,)


class NeuralNetwork(nn.Module):
    """A network, a projection where tied embeddings need one, and a softmax.

    States pass from one batch to the next where a batch `continues`. With `lanes` those of
    training are buffers: checkpoints hold them, and a resumed run continues with them.
    """

    def __init__(
        self,
        body: WindowNetwork | RecurrentNetwork,
        softmax: LinearSoftmax | TailedSoftmax,
        *,
        projected: int | None,
        lanes: int | None,
    ) -> None:
        super().__init__()
        self.body = body
        self.softmax = softmax
        self.project = None if projected is None else nn.Linear(body.width, projected)
        self._passing: State | None = None
        self._carried: list[str] = []
        for number, tensor in enumerate(body.fresh(lanes) if lanes else ()):
            self._carried.append(f"carried_{number}")
            self.register_buffer(self._carried[-1], tensor)

    def rows(self, batch: NeuralBatch) -> Tensor:
        """The rows of real places (T, D), in the order of `batch.targets`."""
        state = self._before(batch)
        rows, after = self.body(batch, state)
        self._keep(tuple(one.detach() for one in after))
        return rows if self.project is None else cast("Tensor", self.project(rows))

    def forward(self, batch: NeuralBatch) -> LossSum:
        """The loss of training, or outside of it the exact one."""
        rows, targets = self.rows(batch), batch.targets[batch.real]
        if self.training:
            return self.softmax.loss(rows, targets, batch.noise)
        scores = self.softmax.scores(rows, targets)
        return LossSum(-scores.double().sum(), targets.numel())

    def learned(self) -> dict[str, Tensor]:
        """The tensors of a model folder: all but the states of training."""
        carried = set(self._carried)
        named = dict(self.named_parameters())  # a shared one once
        return {name: tensor.detach() for name, tensor in named.items() if name not in carried}

    def _before(self, batch: NeuralBatch) -> State:
        columns = batch.inputs.shape[1]
        if not batch.continues:
            return self.body.fresh(columns)
        if self.training and self._carried:
            # Copies: the buffers change before the gradients of this pass are made.
            return tuple(self.get_buffer(name).clone() for name in self._carried)
        if self._passing is None:
            raise RuntimeError("a batch continues, and none came before it")
        return tuple(
            one[..., :columns, :] if one.dim() > 2 else one[:, :columns] for one in self._passing
        )

    def _keep(self, state: State) -> None:
        if self.training and self._carried:
            for name, tensor in zip(self._carried, state, strict=True):
                self.get_buffer(name).copy_(tensor)
        else:
            self._passing = state


@torch.no_grad()
def initialize(model: NeuralNetwork, unigrams: Tensor, generator: Generator) -> None:
    """Uniform weights by the size of their input, biases of words at their log frequency.

    `unigrams` (V,) are the frequencies of words. Forget gates begin open (Gers et al. 2000).
    """
    embedding = model.body.embedding.weight
    for parameter in model.parameters():
        if parameter.dim() < 2:
            parameter.zero_()
        elif parameter is not embedding:
            bound = 1 / math.sqrt(parameter.shape[1])
            parameter.uniform_(-bound, bound, generator=generator)
    embedding.uniform_(-EMBEDDING_RANGE, EMBEDDING_RANGE, generator=generator)
    if isinstance(model.softmax, LinearSoftmax):
        model.softmax.bias.copy_(unigrams.log())
    cell = getattr(model.body, "cell", None)
    if isinstance(cell, nn.LSTM):
        for layer in range(cell.num_layers):
            cell.get_parameter(f"bias_ih_l{layer}")[cell.hidden_size : 2 * cell.hidden_size] = 1.0
