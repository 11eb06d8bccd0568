"""Contextual vectors of words: lists of words through an ELMo network, layer by layer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from bertsmith.models.word_encoders.elmo_network import ElmoNetwork, States
from bertsmith.nn.packing import in_passes
from bertsmith.text.whole_words.characters import character_table, count_cut, mark_rows

Floats = NDArray[np.float32]
PASS_WORDS = 2_048  # of one pass
BEGIN_ROW, END_ROW = 0, 1  # of a pass; its words follow


class ElmoReader:
    """Reads sentences of words; `cut` counts words that were longer than the model reads."""

    def __init__(self, network: ElmoNetwork) -> None:
        self.network = network.eval()
        self.cut = 0

    @property
    def layers(self) -> int:
        """Layers per word: that of the words themselves, and one per LSTM layer."""
        return self.network.spec.layers + 1

    @property
    def width(self) -> int:
        """The width of a layer, both directions."""
        return self.network.spec.width

    def read(self, sentences: Sequence[Sequence[str]]) -> list[Floats]:
        """The layers of each sentence's words: (layers, n, width); each begins with empty states.

        Neighbors of a pass change nothing but the last bits.
        """
        self._count_cut(sentences)
        return in_passes(
            [len(sentence) + 2 for sentence in sentences],
            PASS_WORDS,
            lambda numbers: self._pass([sentences[number] for number in numbers], None)[0],
        )

    def read_carried(
        self, sentences: Sequence[Sequence[str]], states: States | None = None
    ) -> tuple[list[Floats], States | None]:
        """As `read`, but states are carried from sentence to sentence, as TensorFlow's model does.

        Published models were trained like that: their vectors of a first sentence differ a little
        from those of the same sentence later on.
        """
        self._count_cut(sentences)
        found = []
        for sentence in sentences:
            layers, states = self._pass([sentence], states)
            found += layers
        return found, states

    def _count_cut(self, sentences: Sequence[Sequence[str]]) -> None:
        length = self.network.spec.length
        self.cut += sum(count_cut(sentence, length) for sentence in sentences)

    @torch.inference_mode()
    def _pass(
        self, sentences: Sequence[Sequence[str]], states: States | None
    ) -> tuple[list[Floats], States]:
        """Sentences side by side, longest first."""
        length = self.network.spec.length
        distinct = {word: n for n, word in enumerate(dict.fromkeys(_every(sentences)), start=2)}
        rows = np.concatenate([mark_rows(length), character_table(distinct, length)])
        lengths = [len(sentence) + 2 for sentence in sentences]
        places = np.zeros((lengths[0], len(sentences)), dtype=np.int64)
        for column, sentence in enumerate(sentences):
            inner = [distinct[word] for word in sentence]
            places[: len(inner) + 2, column] = [BEGIN_ROW, *inner, END_ROW]
        tokens, directions, states = self.network(
            torch.from_numpy(rows), torch.from_numpy(places), lengths, states=states
        )
        layers = self.network.stacked(tokens, directions).numpy()
        found = [
            np.ascontiguousarray(layers[:, 1 : size - 1, column])
            for column, size in enumerate(lengths)
        ]
        return found, states


def _every(sentences: Sequence[Sequence[str]]) -> Iterator[str]:
    for sentence in sentences:
        yield from sentence
