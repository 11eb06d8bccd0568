"""Which examples each step of pre-training reads, and the losses of a program."""

from __future__ import annotations

import itertools
import logging
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import cast

import numpy as np
from numpy.typing import NDArray
from torch import nn

from bertsmith.corpus.examples import ChosenDocuments, ExampleSource
from bertsmith.corpus.rows import RowsBatch
from bertsmith.corpus.shards import Corpus
from bertsmith.errors import ConfigError
from bertsmith.nn.loss import LossSum, Score
from bertsmith.nn.packing import pack
from bertsmith.objectives.program import Accounted, BatchWide, Program, ProgramBatch
from bertsmith.training.loop.workload import Workload
from bertsmith.training.pretrain.recipe import PretrainRecipe

log = logging.getLogger(__name__)

Numbers = NDArray[np.int64]
MOST_HELD_OUT = 2_048  # texts: enough for three digits, and evaluation stays a small part
SAMPLED = 256  # texts looked at together before training
FEWEST_FOR_PAIRS = 2  # documents: a wrong next sentence comes from another one


class PretrainWorkload(Workload):
    """The work of a recipe on a corpus, for the training loop.

    Example i of step s is number s x batch + i of an endless row of epochs, each in an order of
    its own. Epochs differ by a few examples, so each counts as long as the first: then the place
    of a step is known without a look at the epochs before it. Ranks take neighboring slices of a
    step, so the batch is the same with any number of them. A program with several kinds of examples
    has a row of epochs for each, and each micro-batch is of one kind.
    """

    def __init__(
        self, recipe: PretrainRecipe, corpus: Corpus, *, rank: int = 0, world: int = 1
    ) -> None:
        self.recipe = recipe
        self._rank, self._world = rank, world
        self.program = recipe.program.make(corpus.tokenizer())
        train, held_out = split(recipe, corpus)
        seed = recipe.run.seed
        chosen = ChosenDocuments(
            corpus=corpus,
            documents=train,
            inputs=recipe.inputs[0],
            seed=seed,
            held_out=recipe.eval.held_out,
        )
        self._stages = [
            recipe.program.sources(replace(chosen, inputs=inputs)) for inputs in recipe.inputs
        ]
        apart = replace(chosen, documents=held_out, seed=seed + 1, training=False)
        self._held_out = recipe.program.sources(apart) if len(held_out) else {}
        self._orders: dict[tuple[int, str], tuple[int, Numbers]] = {}
        self._batches: list[ProgramBatch] | None = None

    @property
    def weights(self) -> Mapping[str, float]:
        """The weight of each part of the loss."""
        return self.program.weights

    def micro_batches(self, step: int, share: float) -> list[ProgramBatch]:
        """This rank's micro-batches of a step."""
        stage = self.recipe.stage_at(share)
        examples, allotted = self._stages[stage], self._allotted(stage, share)
        draw_of = self.recipe.program.draw_of
        whole = (
            examples[source].examples(draw_of(epoch), numbers)
            for source, texts in allotted.items()
            for epoch, numbers in self._numbers(step, stage, source, texts, whole=True)
        )
        program = _within(self.program, whole)
        batches: list[ProgramBatch] = []
        for source, texts in allotted.items():
            for epoch, numbers in self._numbers(step, stage, source, texts):
                chosen = (draw_of(epoch), numbers)
                batches += self._cut(program, examples[source], chosen, share)
        return batches

    def counts(self, batch: ProgramBatch) -> Mapping[str, int]:
        """The predictions of each part, known before the forward pass."""
        return batch.counts

    def loss(
        self, model: nn.Module, batch: ProgramBatch
    ) -> tuple[Mapping[str, LossSum], Mapping[str, Score]]:
        """The loss of each part as sum and count, and how many predictions were right."""
        return cast("tuple[dict[str, LossSum], dict[str, Score]]", model(batch))

    def tokens(self, batch: ProgramBatch) -> int:
        """The real tokens of a micro-batch."""
        return batch.tokens

    def examples(self, step: int) -> str:
        """Which examples a step reads, in words."""
        steps = self.recipe.schedule.steps
        share = step / steps if steps else 0.0
        stage = self.recipe.stage_at(share)
        parts = [
            f"examples {numbers[:8].tolist()}{' ...' if len(numbers) > 8 else ''} of epoch {epoch}"
            f"{f' for {source}' if source else ''}"
            for source, texts in self._allotted(stage, share).items()
            for epoch, numbers in self._numbers(step, stage, source, texts)
        ]
        return f"{' and '.join(parts)} (rank {self._rank})"

    def step_tokens(self) -> float:
        """The tokens of a step of all ranks, by the mean length of the texts of an epoch."""
        means: dict[tuple[int, str], float] = {}
        tokens = 0.0
        for width, stage, allotted in self._intervals():
            for source, texts in allotted.items():
                if (stage, source) not in means:
                    examples = self._stages[stage][source]
                    lengths = examples.lengths(0, np.arange(examples.count(0)))
                    means[stage, source] = float(lengths.mean())
                tokens += width * texts * means[stage, source]
        return tokens

    def epochs(self, steps: int) -> int:
        """How many epochs the first so many steps begin, in the stage that begins the most."""
        sizes = [
            texts / self._stages[stage][source].count(0)
            for _, stage, allotted in self._intervals()
            for source, texts in allotted.items()
        ]
        return math.ceil(steps * max(sizes))

    def held_out(self) -> Iterator[ProgramBatch]:
        """This rank's share of the held-out examples, hidden as at the end of training."""
        if self._batches is None:
            self._batches = self._prepared()
        yield from self._batches

    def _prepared(self) -> list[ProgramBatch]:
        batches: list[ProgramBatch] = []
        most = MOST_HELD_OUT // max(len(self._held_out), 1)
        for name, source in self._held_out.items():
            count = source.count(0)
            if count > most:
                what = f" for {name}" if name else ""
                log.info("evaluation reads %d of %d held-out texts%s", most, count, what)
            order = np.random.Generator(np.random.Philox(key=self.recipe.run.seed))
            numbers = order.permutation(count)[:most]
            size = self.recipe.batch.texts(self.recipe.inputs[0].max_length)
            size = size if _reads_batch(self.program) else len(numbers)
            for group in _parts(numbers, size):
                program = _within(self.program, map(source.examples, [0], [group]))
                mine = _slice(group, self._rank, self._world)
                batches += self._cut(program, source, (0, mine), 1.0)
        return batches

    def account(self) -> list[str]:
        """What the program has to report of the first examples, in lines for people."""
        if not isinstance(self.program, Accounted):
            return []
        draw = self.recipe.program.draw_of(0)
        parts = (
            examples.examples(draw, part)
            for source, examples in self._stages[0].items()
            for part in _parts(self._order(0, source, 0)[:MOST_HELD_OUT], SAMPLED)
        )
        return self.program.account(parts)

    def _intervals(self) -> Iterator[tuple[float, int, Mapping[str, int]]]:
        """Shares of training in which steps are alike: width, stage and texts of each source."""
        ends = {stage.after for stage in self.recipe.stages} | set(self.recipe.program.stages)
        borders = sorted({0.0, 1.0, *ends})
        for low, high in itertools.pairwise(borders):
            stage = self.recipe.stage_at(low)
            yield high - low, stage, self._allotted(stage, low)

    def _allotted(self, stage: int, share: float) -> Mapping[str, int]:
        """Texts of a step from each source, over all ranks."""
        texts = self.recipe.batch.texts(self.recipe.inputs[stage].max_length)
        return self.recipe.program.allotted(texts, share)

    def _numbers(
        self, step: int, stage: int, source: str, texts: int, *, whole: bool = False
    ) -> Iterator[tuple[int, Numbers]]:
        """This rank's examples of a step from a source that gives so many `texts`, by epoch.

        Those of all ranks if `whole`.
        """
        size = self._stages[stage][source].count(0)
        places = np.arange(step * texts, (step + 1) * texts)
        places = places if whole else _slice(places, self._rank, self._world)
        epochs = places // size
        for epoch in np.unique(epochs).tolist():
            order = self._order(stage, source, epoch)
            yield epoch, order[(places[epochs == epoch] % size) % len(order)]

    def _order(self, stage: int, source: str, epoch: int) -> Numbers:
        """The examples of an epoch in the order they are read."""
        order_of = self._orders.get((stage, source))
        if order_of is None or order_of[0] != epoch:
            count = self._stages[stage][source].count(self.recipe.program.draw_of(epoch))
            key = np.array([self.recipe.run.seed, (stage << 48) + epoch], dtype=np.uint64)
            order = np.random.Generator(np.random.Philox(key=key)).permutation(count)
            self._orders[stage, source] = order_of = (epoch, order.astype(np.int64))
        return order_of[1]

    def _cut(
        self, program: Program, inputs: ExampleSource, chosen: tuple[int, Numbers], share: float
    ) -> list[ProgramBatch]:
        """Examples `chosen` of an epoch as micro-batches of `micro_tokens`, long ones first.

        Texts of one length stand together, so that attention needs no padding. A program that
        lengthens texts exceeds `micro_tokens` by so much.
        """
        epoch, numbers = chosen
        lengths = inputs.lengths(epoch, numbers)
        order = np.lexsort((numbers, -lengths))
        batches = []
        for part in pack(lengths, self.recipe.batch.micro_tokens, order=order):
            rows = inputs.examples(epoch, numbers[part])
            batches.append(program.prepare(rows, share))
        return batches


def split(recipe: PretrainRecipe, corpus: Corpus) -> tuple[Numbers, Numbers]:
    """Documents to train on and to hold out; where sentences of others are needed, two of each."""
    share = recipe.eval.held_out
    documents = len(corpus.documents) - 1
    if recipe.program.mixes_documents and 0 < share * documents < FEWEST_FOR_PAIRS:
        if documents < 2 * FEWEST_FOR_PAIRS:
            raise ConfigError(
                f"{documents} documents are too few to take sentences of some and hold out others; "
                f"set eval.held_out=0, or leave out {recipe.program.pair or 'distance'} in "
                "program.objectives"
            )
        log.info("of %d documents %d are held out", documents, FEWEST_FOR_PAIRS)
        share = FEWEST_FOR_PAIRS / documents
    return corpus.split(share, recipe.run.seed)


def _reads_batch(program: Program) -> bool:
    return isinstance(program, BatchWide) and program.reads_batch


def _within(program: Program, rows: Iterable[RowsBatch]) -> Program:
    """The program for micro-batches of these rows, which are made only if it reads them."""
    if isinstance(program, BatchWide) and program.reads_batch:
        return program.within(list(rows))
    return program


def _parts(numbers: Numbers, size: int) -> list[Numbers]:
    return np.split(numbers, range(size, len(numbers), size))


def _slice(numbers: Numbers, rank: int, world: int) -> Numbers:
    return np.array_split(numbers, world)[rank].astype(np.int64)
