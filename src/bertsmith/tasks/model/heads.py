"""The heads that settings describe: of the model's own family or not, on texts or on tokens."""

from __future__ import annotations

from abc import ABC
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn

from bertsmith.errors import ConfigError
from bertsmith.models.build import Model
from bertsmith.models.text_model import TextModel
from bertsmith.nn.crf import Crf
from bertsmith.tasks.batch import TaskBatch
from bertsmith.tasks.feature import Feature
from bertsmith.tasks.model.columns import Auxiliary
from bertsmith.tasks.model.layers import (
    CosineHead,
    HeadSettings,
    TextHead,
    WideFeatures,
    draw_weights,
)
from bertsmith.tasks.model.rows import LayerRows, RowReading
from bertsmith.tasks.model.task_head import Standardizer, TaskHead
from bertsmith.tasks.model.text_vector import LAYERS_IN_WORDS, TextVector, VectorSettings

Pool = Literal["mean", "max"]


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadShape:
    """What a head is built from; `pool` joins the passages of an example, None: they stay apart."""

    vector: VectorSettings
    head: HeadSettings
    pool: Pool | None = None
    columns: tuple[Auxiliary, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """What bertsmith.json holds of it."""
        return {
            "vector": self.vector.model_dump(mode="json"),
            "head_settings": self.head.model_dump(mode="json"),
            "auxiliary": {one.column: one.to_json() for one in self.columns},
        }

    def joined(self, vectors: Tensor, batch: TaskBatch) -> Tensor:
        """The passages of each example as one: (B, W) -> (E, W)."""
        if batch.examples == len(vectors) or self.pool is None:
            return vectors
        owners = batch.owners[:, None].expand_as(vectors)
        empty = vectors.new_zeros(batch.examples, vectors.shape[1])
        kind = "amax" if self.pool == "max" else "mean"
        return empty.scatter_reduce(0, owners, vectors, kind, include_self=False)

    def auxiliary(self, width: int, random: torch.Generator | None) -> nn.ModuleList:
        """A linear layer for each further column, on the vector that the head reads."""
        plain = HeadSettings(dropout=self.head.dropout)
        layers = nn.ModuleList(
            TextHead(plain, width=width, outputs=one.outputs, meta_sizes={}) for one in self.columns
        )
        for layer in layers:
            draw_weights(layer, random)
        return layers


class SettledHead(TaskHead, ABC):
    """A head that settings describe."""

    def __init__(self, shape: HeadShape) -> None:
        super().__init__()
        self.shape = shape
        self.columns = shape.columns

    def to_json(self) -> Mapping[str, Any]:
        """Its settings."""
        return self.shape.to_json()


class PublishedTexts(SettledHead):
    """The family's head on whole texts: one row of each passage -> (E, C)."""

    keeps = "vectors"

    def __init__(
        self, model: Model, kind: str, shape: HeadShape, random: torch.Generator | None
    ) -> None:
        super().__init__(shape)
        self.kind = self.published = kind
        self.width = model.spec.hidden
        self.decodes = model.reads(kind) == "decoded" and model.spec.decoder is not None
        self.auxiliary = shape.auxiliary(self.width, random)

    def rows(self, model: TextModel, batch: TaskBatch) -> Tensor | None:
        """The row that the head reads; all, where a decoder reads them first."""
        return None if self.decodes else of_tokens(model).text_places(self.kind, batch.layout)

    def read(self, model: TextModel, layers: Sequence[Tensor], batch: TaskBatch) -> Tensor:
        """The row of each passage (B, D)."""
        if self.decodes:
            return of_tokens(model).text_rows(self.kind, batch.inputs, layers[-1])
        return layers[-1]

    def logits(self, model: TextModel, read: Tensor, batch: TaskBatch) -> Tensor:
        """(B, D) -> (E, C)."""
        return self.shape.joined(of_tokens(model).logits(self.kind, read), batch)

    def with_auxiliary(
        self, model: TextModel, read: Tensor, batch: TaskBatch
    ) -> tuple[Tensor, list[Tensor]]:
        """Further columns are read from what the head's last layer reads."""
        whole = of_tokens(model)
        vectors = whole.encoder.pool(read) if whole.reads(self.kind) == "pooled" else read
        joined = self.shape.joined(vectors, batch)
        return self.logits(model, read, batch), further_logits(self.auxiliary, joined, batch)

    def in_words(self) -> str:
        """What it reads."""
        return "the input of the published head"


class PublishedRows(SettledHead):
    """The family's head on single tokens: (U, D) -> (U, C)."""

    def __init__(self, kind: str, shape: HeadShape) -> None:
        super().__init__(shape)
        self.kind = self.published = kind

    def rows(self, model: TextModel, batch: TaskBatch) -> Tensor | None:
        """The tokens that are read."""
        return _some(batch)

    def read(self, model: TextModel, layers: Sequence[Tensor], batch: TaskBatch) -> Tensor:
        """(U, D)."""
        return layers[-1]

    def logits(self, model: TextModel, read: Tensor, batch: TaskBatch) -> Tensor:
        """(U, D) -> (U, C)."""
        return of_tokens(model).logits(self.kind, read)

    def in_words(self) -> str:
        """What it reads."""
        return "the input of the published head"


class RowsHead(SettledHead):
    """Layers of its own on single tokens, with the scores of a CRF where the task has one."""

    keeps = "layers"

    def __init__(
        self, reading: RowReading, shape: HeadShape, own: TextHead, crf: Crf | None
    ) -> None:
        super().__init__(shape)
        self.reading = reading
        self.crf = crf  # the task reads it; here it is moved, trained and stored
        self.own = own
        self.reads_layers = reading.mix is not None
        self.channels = reading.channels

    def rows(self, model: TextModel, batch: TaskBatch) -> Tensor | None:
        """The tokens that are read; all, where layers stand between them and the head."""
        return None if self.reading.learns else _some(batch)

    def read(self, model: TextModel, layers: Sequence[Tensor], batch: TaskBatch) -> Tensor:
        """(U, W)."""
        if not self.reading.learns:
            return layers[-1]
        rows: LayerRows = self.reading(layers, batch)
        return rows.at(_tokens(batch))

    def logits(self, model: TextModel, read: Tensor, batch: TaskBatch) -> Tensor:
        """(U, W) -> (U, C)."""
        return self.own(read, batch.meta.new_zeros(len(read), 0))  # type: ignore[no-any-return]

    def standardizer(self) -> Standardizer | None:
        """That of the mix."""
        return None if self.reading.mix is None else self.reading.mix.standardize

    def stored(self) -> dict[str, Tensor]:
        """Its weights, those of the reading by their own names."""
        return _stored(self)

    def in_words(self) -> str:
        """What it reads."""
        mixed = f", {LAYERS_IN_WORDS['mix']}" if self.reads_layers else ""
        return f"single tokens{mixed}"


class PassageVectors(nn.Module):
    """The vector of each passage that a head reads: layers of an encoder -> (B, W)."""

    def __init__(self, reading: RowReading, vector: TextVector) -> None:
        super().__init__()
        self.reading = reading
        self.vector = vector
        settings = vector.settings
        firsts = settings.pooling == "first" and settings.layers == "last"
        self.reads_one_row = firsts and reading.lstm is None

    @property
    def keeps(self) -> Literal["vectors", "layers"]:
        """What of it is the same in every epoch on a frozen encoder."""
        learns = self.reading.learns or any(True for _ in self.vector.parameters())
        return "layers" if learns else "vectors"

    def rows(self, batch: TaskBatch) -> Tensor | None:
        """The first row of each passage, where that is all that is read."""
        if not self.reads_one_row:
            return None
        return torch.tensor(batch.layout.starts, device=batch.ids.device)

    def forward(self, layers: Sequence[Tensor], batch: TaskBatch) -> Tensor:
        """Layers of the rows that are read -> (B, W)."""
        if self.reads_one_row:
            return layers[-1]
        rows: LayerRows = self.reading(layers, batch)
        return self.vector(rows.layers, rows.lengths)  # type: ignore[no-any-return]


class VectorHead(SettledHead, ABC):
    """A head on the vectors of passages."""

    def __init__(self, passages: PassageVectors, shape: HeadShape) -> None:
        super().__init__(shape)
        self.passages = passages
        self.width = passages.vector.width
        self.keeps = passages.keeps
        self.reads_layers = shape.vector.needs_layers
        self.channels = passages.reading.channels

    def rows(self, model: TextModel, batch: TaskBatch) -> Tensor | None:
        """The first row of each passage, or all."""
        return self.passages.rows(batch)

    def read(self, model: TextModel, layers: Sequence[Tensor], batch: TaskBatch) -> Tensor:
        """The vector of each passage (B, W)."""
        return self.passages(layers, batch)  # type: ignore[no-any-return]

    def standardizer(self) -> Standardizer | None:
        """That of the mix."""
        mix = self.passages.reading.mix
        return None if mix is None else mix.standardize

    def stored(self) -> dict[str, Tensor]:
        """Its weights, those of the passages' vectors by their own names."""
        return _stored(self)


class PairHead(VectorHead):
    """The cosine of the two vectors of a pair."""

    def __init__(self, passages: PassageVectors, shape: HeadShape) -> None:
        super().__init__(passages, shape)
        self.cosine = CosineHead()

    def logits(self, model: TextModel, read: Tensor, batch: TaskBatch) -> Tensor:
        """(2E, W) -> (E, 1)."""
        return self.cosine(read)  # type: ignore[no-any-return]

    def in_words(self) -> str:
        """What it reads."""
        return f"the cosine of two texts, of each {self.shape.vector.in_words()}"


class TextsHead(VectorHead):
    """Layers of its own on the vectors of examples, and a linear term per token if there is one."""

    def __init__(
        self,
        passages: PassageVectors,
        shape: HeadShape,
        own: TextHead,
        *,
        bag: WideFeatures | None,
        random: torch.Generator | None,
    ) -> None:
        super().__init__(passages, shape)
        self.bag = bag
        self.own = own
        self.auxiliary = shape.auxiliary(self.width, random)

    def logits(self, model: TextModel, read: Tensor, batch: TaskBatch) -> Tensor:
        """(B, W) -> (E, C)."""
        return self._of_joined(self.shape.joined(read, batch), batch)

    def with_auxiliary(
        self, model: TextModel, read: Tensor, batch: TaskBatch
    ) -> tuple[Tensor, list[Tensor]]:
        """Further columns are read from the same vectors."""
        joined = self.shape.joined(read, batch)
        return self._of_joined(joined, batch), further_logits(self.auxiliary, joined, batch)

    def learn(self, features: Sequence[Feature]) -> None:
        """How rare each token is."""
        if self.bag is not None:
            self.bag.learn_rarity(features)

    def in_words(self) -> str:
        """What it reads."""
        tokens = "" if self.bag is None else "; a linear term per token"
        return self.shape.vector.in_words() + tokens

    def _of_joined(self, joined: Tensor, batch: TaskBatch) -> Tensor:
        """Of examples, or of passages that stay apart."""
        whole = len(joined) == batch.examples
        logits: Tensor = self.own(joined, batch.meta if whole else batch.meta[batch.owners])
        if self.bag is None:
            return logits
        passages = torch.arange(len(joined), device=batch.owners.device)
        owners = batch.owners if whole else passages
        terms: Tensor = self.bag(batch, owners, len(joined))
        return logits + terms


def further_logits(auxiliary: nn.ModuleList, vectors: Tensor, batch: TaskBatch) -> list[Tensor]:
    """(E, W) -> (E, C) of each further column."""
    none = batch.meta.new_zeros(len(vectors), 0)
    return [layer(vectors, none) for layer in auxiliary]


def of_tokens(model: TextModel) -> Model:
    """The model, where it is one of the published variants and not an encoder of words."""
    if not isinstance(model, Model):
        raise ConfigError("an encoder of words has no heads of its own; give settings of head")
    return model


def _stored(head: nn.Module) -> dict[str, Tensor]:
    """Weights by the names of a model folder, which do not say what holds a part."""
    return {
        name.removeprefix("passages.").removeprefix("reading."): tensor
        for name, tensor in head.state_dict().items()
    }


def _tokens(batch: TaskBatch) -> Tensor:
    """The tokens that a head on rows reads: (U,)."""
    if batch.at is None:
        raise ConfigError("the task reads rows, and the batch names none")
    return batch.at


def _some(batch: TaskBatch) -> Tensor | None:
    """The same; None for all, as if none were named."""
    at = _tokens(batch)
    return None if torch.equal(at, torch.arange(len(batch.ids), device=at.device)) else at
