"""Reading a model folder: settings alone, the tokenizer, or the whole model with its weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bertsmith.errors import ConfigError, FolderError
from bertsmith.files.folder_hashes import check_hashes, verified, without_weights
from bertsmith.folders.dialects.dialect import Dialect, Opener, dialect_of
from bertsmith.folders.dialects.transformers import (
    DIALECTS,
    TRANSFORMERS,
    no_tokenizer,
    read_tokenizer,
)
from bertsmith.folders.generation import decoder_start
from bertsmith.folders.kinds import MODEL, found_kind, model_abilities, refusal
from bertsmith.folders.opened import CONFIG, OpenFolder
from bertsmith.folders.sentence import MODULES, SentenceFolder
from bertsmith.models.config.keys import ConfigReading, spec_from_config
from bertsmith.models.sentence_spec import DenseLayer, SentenceSettings

if TYPE_CHECKING:
    import torch

    from bertsmith.models.build import Model
    from bertsmith.models.spec import Spec
    from bertsmith.models.variant import Variant
    from bertsmith.text.tokenizer import Tokenizer

TOKENIZER_FILES = (
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.txt",
    "vocab.json",
    "merges.txt",
    "spiece.model",
    "sentencepiece.bpe.model",
)


@dataclass(frozen=True)
class ModelFolder:
    """What a folder says of itself, without its weights."""

    opened: OpenFolder
    config: dict[str, Any]
    reading: ConfigReading
    dialect: Dialect = TRANSFORMERS

    @property
    def path(self) -> Path:
        """Where it lies."""
        return self.opened.path

    @property
    def parts(self) -> SentenceFolder:
        """Where the encoder and what follows it lie."""
        return self.opened.parts

    @property
    def abilities(self) -> frozenset[str]:
        """What a model with the heads of the config can do."""
        heads = [head.kind for head in self.reading.heads]
        return model_abilities(self.spec, heads, self.opened.own)

    @property
    def variant(self) -> str:
        """The published model this is one of."""
        return self.reading.variant.name

    @property
    def spec(self) -> Spec:
        """The shape, as the config tells it."""
        return self.reading.spec

    @property
    def sentence(self) -> SentenceSettings | None:
        """How texts become vectors; None in a folder that does not say."""
        return self.parts.settings

    @property
    def unknown_keys(self) -> tuple[str, ...]:
        """Keys of config.json that were not understood and change no numbers."""
        return self.reading.unknown_keys

    @cached_property
    def tokenizer(self) -> Tokenizer | None:
        """The tokenizer, None if the folder has none."""
        files = self.parts.transformer
        tokenizer = self.dialect.tokenizer(files)
        if tokenizer is not None and tokenizer.vocab_size > self.spec.vocab_size:
            raise FolderError(
                f"{files.path}: the tokenizer has ids up to {tokenizer.vocab_size - 1:,}, the "
                f"embedding only {self.spec.vocab_size:,} rows; they belong to different models"
            )
        return tokenizer

    def longest(self) -> int | None:
        """The longest text in tokens: the folder's own limit, within what the positions hold."""
        stated = self.sentence.max_length if self.sentence else None
        if stated is None and self.tokenizer is not None:
            stated = self.tokenizer.model_max_length
        limits = [limit for limit in (stated, self.spec.longest) if limit is not None]
        return min(limits, default=None)


@dataclass(frozen=True)
class LoadedFolder:
    """A model in memory and everything its folder says of it.

    `sentence` is mean pooling where the folder does not say; `folder.sentence` is then None.
    """

    folder: ModelFolder
    model: Model
    sentence: SentenceSettings

    @property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer; a folder without one is an error only when it is needed."""
        if self.folder.tokenizer is None:
            raise no_tokenizer(self.folder.parts.transformer)
        return self.folder.tokenizer

    @property
    def unknown_keys(self) -> tuple[str, ...]:
        """Keys of config.json that were not understood and change no numbers."""
        return self.folder.unknown_keys


def read_folder(
    name: str | Path | OpenFolder,
    *,
    variants: Sequence[Variant] = (),
    dialects: Sequence[Dialect] = DIALECTS,
) -> ModelFolder:
    """The settings of a model by path or name; neither torch nor weights are loaded.

    `variants` are known besides those of the table, and `dialects` are the layouts to look for.
    """
    opened = name if isinstance(name, OpenFolder) else OpenFolder.at(name)
    kind = found_kind(opened)
    if kind is not None and kind is not MODEL:
        raise refusal(opened.path, kind, "encode")
    home = opened.home
    dialect = dialect_of(home, dialects)
    if dialect is None:
        raise OpenFolder(home).nothing()
    config = dialect.config(home)
    try:
        reading = spec_from_config(config, variants=variants)
        start = decoder_start(home)
        if reading.spec.decoder is not None and start is not None:
            decoder = replace(reading.spec.decoder, start=start)
            reading = replace(reading, spec=replace(reading.spec, decoder=decoder))
    except ConfigError as fault:
        raise ConfigError(f"{home.path / CONFIG}: {fault}") from fault
    return ModelFolder(opened, config, reading, dialect)


def load_tokenizer(name: str | Path | OpenFolder) -> Tokenizer:
    """The tokenizer of a model by path or name, without its weights."""
    opened = name if isinstance(name, OpenFolder) else OpenFolder.at(name)
    check_hashes(opened.root, without_weights)
    kind = found_kind(opened)
    if kind is None:  # a vocabulary without a model
        return read_tokenizer(opened.root)
    if kind is not MODEL and "tokenize" not in kind.abilities(opened):
        raise refusal(opened.path, kind, "tokenize")
    if kind is not MODEL:
        return read_tokenizer(opened.home)
    found = read_folder(opened).tokenizer
    if found is None:
        raise no_tokenizer(opened.home)
    return found


def load_model(
    name: str | Path | OpenFolder,
    *,
    device: str = "cpu",
    dtype: torch.dtype | None = None,
    variants: Sequence[Variant] = (),
    dialects: Sequence[Dialect] = DIALECTS,
) -> LoadedFolder:
    """A model by path or name, ready to be run, with all heads its folder has.

    Never opens a pickle; names every tensor that is missing, left over or misshapen. `variants`
    are those of your own, where the model is one of them, and `dialects` the layouts to look for.
    """
    folder = read_folder(name, variants=variants, dialects=dialects)
    return assemble(folder, device=device, dtype=dtype)


def assemble(
    folder: ModelFolder, *, device: str = "cpu", dtype: torch.dtype | None = None
) -> LoadedFolder:
    """The model of a folder, with weights as its dialect stores them."""
    import torch

    from bertsmith.folders.load_weights import fill_model

    dtype = torch.float32 if dtype is None else dtype
    longest = folder.longest()  # reads the tokenizer: a broken one shows before the weights are
    opener = folder.dialect.opener
    with verified(folder.opened.root):
        with folder.dialect.weights(folder.parts.transformer) as weights:
            model = fill_model(folder.reading, weights, device=device, dtype=dtype)
        settings = folder.sentence or SentenceSettings()
        width = model.spec.hidden * len(settings.pooling)
        settings = replace(
            settings,
            max_length=longest,
            dense=read_dense(folder.parts, opener, width=width, device=device, dtype=dtype),
            layer_mix=_read_mix(folder, opener),
        )
    return LoadedFolder(folder, model, settings)


def read_dense(
    parts: SentenceFolder, opener: Opener, *, width: int, device: str, dtype: torch.dtype
) -> tuple[DenseLayer, ...]:
    """The dense layers after a pooling of that width, with their weights."""
    from bertsmith.folders.load_weights import fill_dense

    layers = []
    for layer, place in zip(
        parts.settings.dense if parts.settings else (), parts.dense, strict=True
    ):
        with opener(place) as weights:
            layers.append(fill_dense(layer, weights, device=device, dtype=dtype))
        if layer.inputs != width:
            raise FolderError(
                f"{place.path}: this dense layer takes {layer.inputs} columns and gets {width}"
            )
        width = layer.outputs
    return tuple(layers)


def _read_mix(folder: ModelFolder, opener: Opener) -> tuple[float, ...] | None:
    """The weights of the embeddings and of every layer, if the folder mixes layers."""
    import torch

    from bertsmith.folders.load_weights import read_exactly

    mix = folder.parts.mix
    if mix is None:
        return None
    if mix.layers != folder.spec.layers:
        raise FolderError(
            f"{mix.folder.path}: the mix is one of {mix.layers} layers, and the model has "
            f"{folder.spec.layers}; they belong to different models"
        )
    if folder.config.get("output_hidden_states") is not True:
        raise FolderError(
            f"{folder.path}: the mix of layers has no effect in sentence-transformers unless "
            f'{CONFIG} has "output_hidden_states": true; add that, or remove WeightedLayerPooling '
            f"from {MODULES}"
        )
    shapes = {"layer_weights": (mix.layers + 1 - mix.start,)}
    with opener(mix.folder) as weights:
        stored = read_exactly(weights, shapes, device="cpu", dtype=torch.float64)
    return (*[0.0] * mix.start, *stored["layer_weights"].tolist())
