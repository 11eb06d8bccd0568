"""WordEmbedder: vectors of words in their texts, layer by layer, for any number of texts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray

from bertsmith.errors import ConfigError, TextError
from bertsmith.folders.word_encoders.read import WordFolder, load_word_folder
from bertsmith.hardware.devices import torch_device
from bertsmith.nn.encoder import Want
from bertsmith.nn.inputs import CHARACTERS, Inputs
from bertsmith.nn.packing import in_passes
from bertsmith.runtime.host import TorchHost, not_finite
from bertsmith.runtime.selection import Precision
from bertsmith.text.blocks import groups
from bertsmith.text.encoding import Encoding, UnknownTokens

Floats = NDArray[np.float32]
LayerChoice = Literal["all", "mean"] | int
PASS_WORDS = 4_096  # of one pass
CHUNK = 1_024  # texts in memory at a time


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WordLayers:
    """The n words of a text: where they stand (n, 2), and their layers (N, n, D)."""

    words: tuple[str, ...]
    offsets: NDArray[np.int32]
    layers: Floats

    def vectors(self, layer: LayerChoice = "mean") -> Floats:
        """One vector per word: a layer (n, D), the mean of all, or "all" side by side (n, N D)."""
        if layer == "mean":
            mean: Floats = self.layers.mean(axis=0)
            return mean
        if layer == "all":
            return np.concatenate(list(self.layers), axis=1)
        if not 0 <= layer < len(self.layers):
            raise ConfigError(
                f"there is no layer {layer}; the encoder has {len(self.layers)}, counted from 0, "
                "the vectors of the words themselves"
            )
        one: Floats = self.layers[layer]
        return one


class WordEmbedder:
    """Contextual vectors of words by ELMo, or one vector per word from a table."""

    def __init__(
        self, loaded: WordFolder, *, device: str = "cpu", precision: Precision = "fp32"
    ) -> None:
        self.kind = loaded.kind
        self.model, self.tokenizer = loaded.model, loaded.tokenizer
        self._host = TorchHost(self.model, self.tokenizer, device=device, precision=precision)

    @property
    def layers(self) -> int:
        """Layers per word: that of the words themselves, and those above it."""
        return self.model.spec.layers + 1

    @property
    def width(self) -> int:
        """The width of a layer."""
        return self.model.spec.hidden

    def dimension(self, layer: LayerChoice = "mean") -> int:
        """The width of what `WordLayers.vectors` gives."""
        return self.width * (self.layers if layer == "all" else 1)

    def words(
        self, texts: Sequence[str], *, unknown: UnknownTokens | None = None
    ) -> list[WordLayers]:
        """The words of each text with their layers.

        Neighbors of a batch change nothing but the last bits. `unknown` counts the words that have
        no vector, or that ELMo reads in part.
        """
        if isinstance(texts, str):
            raise TextError("words takes a list of texts; for one text, give [text]")
        return list(self.stream(texts, unknown=unknown))

    def stream(
        self, texts: Iterable[str], *, unknown: UnknownTokens | None = None
    ) -> Iterator[WordLayers]:
        """The same, in order, for any number of texts."""
        for some in groups(texts, CHUNK):
            encodings = self.tokenizer.encode_batch(some)
            if unknown is not None:
                ids = [one.ids[_real(one)] for one in encodings]
                unknown.add(self.tokenizer.unknown_tokens(ids))
            read = in_passes(list(map(len, encodings)), PASS_WORDS, partial(self._pass, encodings))
            for text, encoding, layers in zip(some, encodings, read, strict=True):
                yield _words(text, encoding, layers)

    @torch.inference_mode()
    def _pass(self, encodings: Sequence[Encoding], numbers: Sequence[int]) -> list[Floats]:
        """The layers (N, n, D) of some of the texts."""
        some = [encodings[number] for number in numbers]
        lengths = [len(one) for one in some]
        spelled = [one.characters for one in some if one.characters is not None]
        inputs = Inputs.of(
            np.concatenate([one.ids for one in some]),
            lengths,
            channels={CHARACTERS: np.concatenate(spelled)} if spelled else None,
        ).to(self._host.device)
        with self._host.torch_turn():
            layers = self.model(inputs, want=Want(layers=True)).layers or ()
        stacked = torch.stack(list(layers)).float().cpu().numpy()
        if not np.isfinite(stacked).all():
            raise not_finite("a text")
        return np.split(stacked, np.cumsum(lengths)[:-1], axis=1)


def _real(encoding: Encoding) -> NDArray[np.bool_]:
    """All rows but the one that stands for a text that has no words: (L,)."""
    return encoding.offsets[:, 1] > encoding.offsets[:, 0]


def _words(text: str, encoding: Encoding, layers: Floats) -> WordLayers:
    real = _real(encoding)
    offsets = encoding.offsets[real]
    return WordLayers(
        words=tuple(text[start:end] for start, end in offsets.tolist()),
        offsets=offsets,
        layers=np.ascontiguousarray(layers[:, real]),
    )


def load_words(
    name: str | Path, *, device: str = "cpu", precision: Precision = "fp32"
) -> WordEmbedder:
    """An encoder of words, ready for `words`: a folder of ELMo, or word vectors.

    ELMo folders are those of `bertsmith lm train --kind elmo`, published ones (options.json and
    weights.hdf5), and fine-tuned ones; word vectors a folder of `bertsmith words train`, or a file
    of word2vec or GloVe.
    """
    where = str(torch_device(device))
    return WordEmbedder(load_word_folder(name, device=where), device=where, precision=precision)
