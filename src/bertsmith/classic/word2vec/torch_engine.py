"""word2vec in torch, where no C++ compiler is at hand: many windows per step, shared noise words.

All gradients of a step are taken at the values before it. Every prediction of a step is measured
against the same noise words, each with the weight k / (their number).
"""

from __future__ import annotations

import threading
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bertsmith.classic.word2vec.settings import Word2VecSettings
from bertsmith.classic.word2vec.tables import Schedule, Tables, WordWeights

CENTERS = 256  # windows per step
CENTERS_OF_TREE = 16  # the root of the tree is part of every prediction
NOISE = 32  # noise words per step
MOST_TIMES = 64.0  # that a word or a node counts in full in one step
MOST_NOISE = 256.0  # the same for a noise word, whose gradients are small
_SURE = 1.0 - 1e-7
_KEEP_ALL = (1 << 32) - 1


_Members = tuple[Tensor, Tensor | None, Tensor | None, Tensor | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRows:
    """One step of Q predictions: who predicts, and what.

    `members` (K,) are rows of the inputs. `owners` (K,) is the prediction each belongs to,
    `shares` (K,) its factor in the prediction's vector and `backs` (K,) the factor of the error it
    takes; without owners, each is a prediction of its own. `targets` (Q, N) are rows of the
    outputs, `signs` 1 or -1, `sizes` the weights, 0 for padding. `common` (C,) are outputs that
    all predictions share, with weights `common_sizes` (C,); all of them are wrong, but for those
    that `right` (Q, C) marks, which do not count.
    """

    members: Tensor
    targets: Tensor
    signs: Tensor
    sizes: Tensor
    owners: Tensor | None = None
    shares: Tensor | None = None
    backs: Tensor | None = None
    common: Tensor | None = None
    common_sizes: Tensor | None = None
    right: Tensor | None = None


def train_step(
    inputs: Tensor, outputs: Tensor, rows: StepRows, rate: float, shift: Tensor | None
) -> float:
    """Change inputs (V, S) and outputs in place; the sum of the losses before the step.

    A row that takes part very often is moved less than the sum of its gradients says, because all
    of them were taken at its old value: see `_add_damped`.
    """
    vectors = inputs.index_select(0, rows.members)  # (K, S); five times as fast as inputs[...]
    if rows.owners is not None and rows.shares is not None:
        members = vectors * rows.shares[:, None]
        vectors = inputs.new_zeros(len(rows.targets), inputs.shape[1])
        vectors.index_add_(0, rows.owners, members)  # (Q, S)
    single = rows.targets.shape[1] == 1
    flat = rows.targets.flatten()
    own = outputs.index_select(0, flat)  # (Q N, S)
    if single:
        scores = torch.linalg.vecdot(own, vectors)[:, None]  # (Q, 1)
    else:
        own = own.view(*rows.targets.shape, -1)
        scores = torch.bmm(own, vectors[:, :, None]).squeeze(2)  # (Q, N)
    if shift is not None:
        scores += shift[rows.targets]
    wrong = torch.sigmoid_(-scores * rows.signs)  # (Q, N)
    loss = -(torch.log1p(-wrong.clamp(max=_SURE)) * rows.sizes).sum(dtype=torch.float64)
    steps = wrong * rows.signs * rows.sizes * rate
    errors = own.mul_(steps) if single else torch.bmm(steps[:, None], own).squeeze(1)  # (Q, S)
    if rows.common is not None and rows.common_sizes is not None:
        shared = outputs.index_select(0, rows.common)  # (C, S)
        scores = vectors @ shared.T  # (Q, C)
        if shift is not None:
            scores += shift[rows.common]
        wrong = torch.sigmoid_(scores).clamp_(max=_SURE)
        counts = len(wrong) * rows.common_sizes
        if rows.right is not None:
            wrong.masked_fill_(rows.right, 0.0)
            counts -= rows.right.sum(0) * rows.common_sizes
        logs = torch.log1p(-wrong).sum(0, dtype=torch.float64)
        loss -= (logs * rows.common_sizes).sum()
        common = wrong.mul_(rows.common_sizes * -rate)
        errors.addmm_(common, shared)
        most = MOST_NOISE if shift is None else MOST_TIMES
        less = (most / counts).clamp(max=1.0)
        outputs.index_add_(0, rows.common, (common.T @ vectors) * less[:, None])
    places = vectors if single else vectors.repeat_interleave(rows.targets.shape[1], dim=0)
    moves = places * steps.flatten()[:, None]
    _add_damped(outputs, flat, moves, rows.sizes.flatten())
    if rows.owners is not None and rows.backs is not None:
        errors = errors.index_select(0, rows.owners).mul_(rows.backs[:, None])
    _add_damped(inputs, rows.members, errors, errors.new_ones(len(errors)))
    return float(loss)


def _add_damped(matrix: Tensor, rows: Tensor, moves: Tensor, sizes: Tensor) -> None:
    """Add moves (K, S) to rows (K,), less to rows with sizes (K,) of more than `MOST_TIMES`."""
    times = sizes.new_zeros(len(matrix)).index_add_(0, rows, sizes)
    if times.max() > MOST_TIMES:
        moves *= (MOST_TIMES / times.index_select(0, rows).clamp(min=MOST_TIMES))[:, None]
    matrix.index_add_(0, rows, moves)


class TorchWordEngine:
    """Trains weights on chunks of text; any number of threads may call `run` at once."""

    def __init__(self, tables: Tables, weights: WordWeights, settings: Word2VecSettings) -> None:
        self.name = "torch"
        self.seen = np.zeros(1, dtype=np.int64)
        self._tables = tables
        self._settings = settings
        self._schedule = Schedule.of(settings, tables.known)
        self._inputs = torch.from_numpy(weights.inputs)
        self._outputs = torch.from_numpy(weights.outputs)
        self._shift = None if tables.shift is None else torch.from_numpy(tables.shift)
        self._lock = threading.Lock()
        self._hierarchical = settings.loss == "hierarchical"

    def run(self, first: int, last: int, seed: int) -> tuple[float, float]:
        """Train on pieces first to last; the sum of losses and the number of predictions."""
        draw = np.random.Generator(np.random.PCG64(seed))
        words, piece, known = self._text(first, last, draw)
        reach = draw.integers(1, self._settings.window + 1, len(words))
        loss = pairs = 0.0
        together = CENTERS_OF_TREE if self._hierarchical else CENTERS
        counted = 0
        for at in range(0, len(words), together):
            end = min(at + together, len(words))
            rows = self._rows(words, piece, reach, (at, end), draw)
            with self._lock:
                rate = self._schedule.rate(int(self.seen[0]))
                done = round(known * end / len(words)) - counted
                self.seen[0] += done
            counted += done
            if rows is not None:
                loss += train_step(self._inputs, self._outputs, rows, rate, self._shift)
                pairs += len(rows.targets)
        with self._lock:
            self.seen[0] += known - counted
        return loss, pairs

    def _text(
        self, first: int, last: int, draw: np.random.Generator
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
        """Rows of the words that are not dropped, the piece of each, and how many were known."""
        borders = self._tables.pieces[first : last + 1]
        ids = np.asarray(self._tables.ids[borders[0] : borders[-1]])
        piece = np.repeat(np.arange(last - first), np.diff(borders))
        known = ids > 0
        words, piece = ids[known].astype(np.int64) - 1, piece[known]
        keep = self._tables.keep[words]
        stays = (keep == _KEEP_ALL) | (draw.integers(0, 1 << 32, len(words)) <= keep)
        return words[stays], piece[stays], int(known.sum())

    def _rows(
        self,
        words: NDArray[np.int64],
        piece: NDArray[np.int64],
        reach: NDArray[np.int64],
        part: tuple[int, int],
        draw: np.random.Generator,
    ) -> StepRows | None:
        """The predictions of some windows; None if no word has a neighbor."""
        window = self._settings.window
        steps = np.concatenate([np.arange(-window, 0), np.arange(1, window + 1)])
        centers = np.arange(*part)
        places = centers[:, None] + steps  # (B, 2 window)
        there = np.clip(places, 0, len(words) - 1)
        valid = (places == there) & (np.abs(steps) <= reach[centers, None])
        valid &= piece[there] == piece[centers, None]
        owners, columns = np.nonzero(valid)
        if not len(owners):
            return None
        members = torch.from_numpy(words[there[owners, columns]])
        grouped: _Members
        if self._settings.model == "skipgram":
            middles, middle = words[centers], owners
            grouped = (members, None, None, None)
        else:
            filled, owners = np.unique(owners, return_inverse=True)
            middles, middle = words[centers[filled]], np.arange(len(filled))
            shares = torch.from_numpy((1.0 / np.bincount(owners))[owners]).float()
            ones = torch.ones(len(owners))
            factors = (ones, shares) if self._settings.combine == "sum" else (shares, ones)
            grouped = (members, torch.from_numpy(owners), *factors)
        if self._hierarchical:
            return self._paths(grouped, middles[middle])
        return self._noise(grouped, middles, middle, draw)

    def _noise(
        self,
        grouped: _Members,
        middles: NDArray[np.int64],
        middle: NDArray[np.int64],
        draw: np.random.Generator,
    ) -> StepRows:
        """`middle` (Q,) is the place in `middles` (B,) of the word of each prediction."""
        table = self._tables.noise
        drawn = draw.integers(0, len(table), NOISE)
        stays = draw.integers(0, 1 << 32, NOISE) < table[drawn, 0]
        noise, counts = np.unique(np.where(stays, drawn, table[drawn, 1]), return_counts=True)
        sizes = counts * (self._settings.noise_words / NOISE)
        right = noise == middles[:, None]  # (B, C)
        members, owners, shares, backs = grouped
        ones = torch.ones(len(middle), 1)
        return StepRows(
            members=members,
            owners=owners,
            shares=shares,
            backs=backs,
            targets=torch.from_numpy(middles[middle])[:, None],
            signs=ones,
            sizes=ones,
            common=torch.from_numpy(noise.astype(np.int64)),
            common_sizes=torch.from_numpy(sizes).float(),
            right=torch.from_numpy(right[middle]) if right.any() else None,
        )

    def _paths(self, grouped: _Members, targets: NDArray[np.int64]) -> StepRows:
        tree = self._tables.tree
        lengths = tree.starts[targets + 1] - tree.starts[targets]
        columns = np.arange(int(lengths.max()))
        there = columns < lengths[:, None]  # (Q, L)
        places = np.where(there, tree.starts[targets][:, None] + columns, 0)
        members, owners, shares, backs = grouped
        return StepRows(
            members=members,
            owners=owners,
            shares=shares,
            backs=backs,
            targets=torch.from_numpy(tree.nodes[places].astype(np.int64)),
            signs=torch.from_numpy(1.0 - 2.0 * tree.codes[places]).float(),
            sizes=torch.from_numpy(there.astype(np.float32)),
        )
