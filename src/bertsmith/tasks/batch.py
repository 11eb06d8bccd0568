"""TaskBatch: the passages of whole examples as packed rows, with their targets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from bertsmith.errors import TextError
from bertsmith.nn.inputs import CHARACTERS, SEGMENTS, Inputs
from bertsmith.nn.layout import Dense, Layout, Sees
from bertsmith.tasks.feature import Feature
from bertsmith.text.encoding import Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskBatch:
    """`inputs`, T rows of B passages that belong to E examples.

    `owners` (B,) is the example of each passage, counted from 0 in this batch; `numbers` (E,) are
    those of the examples in the list of rows (of training, or held out), the same in every epoch:
    by them the logits of a teacher can be looked up. `at` (U,) are the rows that a head on rows
    reads, None for tasks on whole texts; `units` (U,) are the units of the example they represent,
    if the task has units. `targets` is None if an example is unlabeled; else it has one entry per
    example, or per `at`. `meta` (E, n) and `auxiliary` (E, m) are of further columns. `vectors`
    (B, W) are cached encoder outputs, if all passages have one, and so are `layers` (n, T, D).
    """

    inputs: Inputs
    owners: Tensor
    numbers: Tensor
    examples: int
    at: Tensor | None
    units: Tensor | None
    targets: Tensor | None
    meta: Tensor
    auxiliary: Tensor
    vectors: Tensor | None
    layers: Tensor | None = None

    @property
    def ids(self) -> Tensor:
        """(T,) the token ids."""
        return self.inputs.ids

    @property
    def layout(self) -> Layout:
        """The layout of the T rows."""
        return self.inputs.layout

    @property
    def tokens(self) -> int:
        """The tokens that pass through the encoder: T, or 0 with cached outputs."""
        return self.ids.shape[0] if self.vectors is None and self.layers is None else 0

    @property
    def wanted(self) -> Tensor:
        """The targets; raises if an example is unlabeled."""
        if self.targets is None:
            raise TextError("a batch with unlabeled rows has no loss")
        return self.targets

    def with_vectors(self, vectors: Tensor) -> TaskBatch:
        """The same batch with vectors (T, E) in place of the token embeddings of all its rows."""
        rows = torch.arange(len(vectors), device=vectors.device)
        return replace(self, inputs=replace(self.inputs, vectors=vectors, vector_rows=rows))

    def to(self, device: torch.device | str) -> TaskBatch:
        """The same batch on a device."""

        def moved(tensor: Tensor | None) -> Tensor | None:
            return None if tensor is None else tensor.to(device, non_blocking=True)

        return replace(
            self,
            inputs=self.inputs.to(device),
            owners=self.owners.to(device),
            numbers=self.numbers.to(device),
            at=moved(self.at),
            units=moved(self.units),
            targets=moved(self.targets),
            meta=self.meta.to(device),
            auxiliary=self.auxiliary.to(device),
            vectors=moved(self.vectors),
            layers=moved(self.layers),
        )


def task_batch(features: Sequence[Feature]) -> TaskBatch:
    """One batch of features; those of an example must be adjacent."""
    lengths = tuple(len(feature) for feature in features)
    numbers = [feature.example for feature in features]
    order = list(dict.fromkeys(numbers))
    place = {number: at for at, number in enumerate(order)}
    starts = np.cumsum([0, *lengths[:-1]])
    firsts = {feature.example: feature for feature in reversed(features)}
    reads_rows = features[0].at is not None
    at = [
        feature.at + start
        for feature, start in zip(features, starts, strict=True)
        if feature.at is not None
    ]
    units = [feature.units for feature in features if feature.units is not None]
    labeled = features if reads_rows else [firsts[number] for number in order]
    targets = [feature.target for feature in labeled if feature.target is not None]
    vectors = [feature.vector for feature in features if feature.vector is not None]
    layers = [feature.layers for feature in features if feature.layers is not None]
    return TaskBatch(
        inputs=feature_inputs(features),
        owners=torch.tensor([place[number] for number in numbers]),
        numbers=torch.tensor([firsts[number].number for number in order]),
        examples=len(order),
        at=_joined(at) if reads_rows else None,
        units=_joined(units) if len(units) == len(features) else None,
        targets=_targets(targets, rows=reads_rows) if len(targets) == len(labeled) else None,
        meta=torch.from_numpy(np.stack([firsts[number].meta for number in order])),
        auxiliary=torch.from_numpy(np.stack([firsts[number].auxiliary for number in order])),
        vectors=torch.from_numpy(np.stack(vectors)) if len(vectors) == len(features) else None,
        layers=_side_by_side(layers) if len(layers) == len(features) else None,
    )


def feature_inputs(features: Sequence[Feature]) -> Inputs:
    """The rows of features as a model reads them."""
    return Inputs.of(
        np.concatenate([feature.encoding.ids for feature in features]),
        [len(feature) for feature in features],
        positions=positions_of(features),
        sees=visibility_of(features),
        channels=channels_of(features),
    )


def channels_of(features: Sequence[Feature]) -> dict[str, Ints]:
    """Segments and further channels, which all features of a batch must share."""
    names = features[0].channels.keys()
    for feature in features:
        if feature.channels.keys() != names:
            raise TextError(
                f"features with channels {sorted(names)} and {sorted(feature.channels)} cannot "
                "share a batch"
            )
    further = {name: np.concatenate([one.channels[name] for one in features]) for name in names}
    spelled = [one.encoding.characters for one in features if one.encoding.characters is not None]
    if spelled:
        further[CHARACTERS] = np.concatenate(spelled).astype(np.int32)
    return {SEGMENTS: np.concatenate([one.encoding.segments for one in features]), **further}


def positions_of(features: Sequence[Feature]) -> Ints | None:
    """Positions of all rows; a feature without them counts from 0."""
    if all(feature.positions is None for feature in features):
        return None
    return np.concatenate(
        [
            np.arange(len(one), dtype=np.int32) if one.positions is None else one.positions
            for one in features
        ]
    )


def visibility_of(features: Sequence[Feature]) -> Sees | None:
    """A matrix if some feature has one; in the others every token sees every token."""
    if all(feature.visible is None for feature in features):
        return None
    longest = max(map(len, features))
    visible = np.zeros((len(features), longest, longest), dtype=bool)
    for square, feature in zip(visible, features, strict=True):
        size = len(feature)
        square[:size, :size] = True if feature.visible is None else feature.visible
    return Dense(torch.from_numpy(visible))


def _joined(parts: Sequence[np.ndarray]) -> Tensor:
    return torch.from_numpy(np.concatenate(parts).astype(np.int64))


def _side_by_side(layers: Sequence[np.ndarray]) -> Tensor:
    """The layers of all passages: -> (n, T, D)."""
    return torch.from_numpy(np.concatenate(layers, axis=1))


def _targets(targets: Sequence[np.ndarray], *, rows: bool) -> Tensor:
    return torch.from_numpy(np.concatenate(targets) if rows else np.stack(targets))
