"""Which lines each step of a causal language model reads, and the loss of the next token."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from torch import nn

from bertsmith.classic.gpt.settings import GptSettings
from bertsmith.classic.gpt.units import Ids, TokenUnits
from bertsmith.classic.neural.reading import WordLines
from bertsmith.corpus.rows import RowsBatch
from bertsmith.nn.packing import pack
from bertsmith.objectives.batch import PretrainBatch
from bertsmith.objectives.causal import CausalProgram
from bertsmith.objectives.program import PretrainModule
from bertsmith.training.loop.epochs import Epochs
from bertsmith.training.loop.workload import Losses, Workload

PASS_TOKENS = 8_192  # of one pass


class GptWorkload(Workload):
    """The work of the training loop: step s reads lines s x n to (s + 1) x n of endless epochs.

    A line longer than the window is read in pieces; each token is predicted once.
    """

    def __init__(
        self, settings: GptSettings, units: TokenUnits, train: WordLines, held_out: WordLines
    ) -> None:
        self._plan = settings.plan
        self._units = units
        self._train, self._held_out = train, held_out
        self._epochs = Epochs(len(train), settings.seed)
        self._program = CausalProgram()

    @property
    def program(self) -> CausalProgram:
        """What is predicted from what."""
        return self._program

    @property
    def steps_of_epoch(self) -> float:
        """How many steps read every line once."""
        return len(self._train) / self._plan.lines

    @property
    def weights(self) -> Mapping[str, float]:
        """One part."""
        return self._program.weights

    def micro_batches(self, step: int, share: float) -> list[PretrainBatch]:
        """The batches of a step."""
        return list(self._batches(self._train, self._numbers(step)))

    def counts(self, batch: PretrainBatch) -> dict[str, int]:
        """Predictions, line ends included."""
        return batch.counts

    def loss(self, model: nn.Module, batch: PretrainBatch) -> Losses:
        """The loss over all tokens of the model."""
        if not isinstance(model, PretrainModule):
            raise TypeError(f"a causal program trains a PretrainModule, not {type(model)}")
        return self._program.losses(model, batch)

    def tokens(self, batch: PretrainBatch) -> int:
        """The tokens that are read."""
        return batch.tokens

    def examples(self, step: int) -> str:
        """Which lines a step reads, in words."""
        numbers = self._numbers(step)
        return f"lines {numbers[:8]}{' ...' if len(numbers) > 8 else ''}, counted from 0"

    def held_out(self) -> Iterator[PretrainBatch]:
        """The held-out lines."""
        yield from self._batches(self._held_out, range(len(self._held_out)))

    def _numbers(self, step: int) -> list[int]:
        many = self._plan.lines
        return [self._epochs.row(reading) for reading in range(step * many, (step + 1) * many)]

    def _batches(self, lines: WordLines, numbers: Sequence[int]) -> Iterator[PretrainBatch]:
        pieces = [piece for number in numbers for piece in self._pieces(lines, number)]
        for some in pack([len(piece) for piece in pieces], PASS_TOKENS):
            yield self._program.prepare(_rows([pieces[number] for number in some]))

    def _pieces(self, lines: WordLines, number: int) -> Iterator[Ids]:
        """A line in pieces of at most a window; each begins with the last token of the other."""
        first, end = int(lines.starts[number]), int(lines.starts[number + 1])
        tokens = self._units.line(np.asarray(lines.ids[first:end]))
        step = self._plan.window - 1
        for start in range(0, len(tokens) - 1, step):
            yield tokens[start : start + step + 1]


def _rows(texts: Sequence[Ids]) -> RowsBatch:
    ids = np.concatenate(texts)
    return RowsBatch(
        ids=ids,
        segments=np.zeros_like(ids),
        words=np.full_like(ids, -1),
        lengths=tuple(map(len, texts)),
        keys=np.zeros(len(texts), dtype=np.uint64),
    )
