"""The seven tasks of ERNIE 2.0 (Sun et al. 2019, arXiv:1907.12412): examples and classes."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from bertsmith.config import Settings
from bertsmith.corpus.examples import (
    ChosenDocuments,
    CorpusExamples,
    ExampleSource,
    PlannedExamples,
)
from bertsmith.corpus.plans import Plan
from bertsmith.corpus.sentence_plans import (
    DISTANCES,
    ORDERS,
    distances,
    parts_of_documents,
    reordered,
)
from bertsmith.corpus.token_labels import capital_labels, elsewhere_labels, with_labels
from bertsmith.corpus.view import CorpusView
from bertsmith.errors import ConfigError
from bertsmith.objectives.continual.discourse import MarkerFinder, MarkerList, read_markers
from bertsmith.objectives.continual.labeled_pairs import LabeledPairs, PairExamples

RELEVANCE = ("0", "1", "2")
Reads = Literal["masked", "tokens", "text"]


class ContinualTask(Settings):
    """One task: when it begins, how much it counts, and what its examples are.

    `reads` is what it predicts from: masked tokens, rows with a label, or the pooled first row of
    a text. `number` is its id in the task embedding where the recipe gives none.
    """

    weight: Annotated[float, Field(gt=0)] = 1.0  # in the loss
    after: Annotated[float, Field(ge=0, lt=1)] = 0.0  # the share of training at which it begins
    share: Annotated[float, Field(gt=0)] = 1.0  # of the texts of a step, next to the other tasks
    task: Annotated[int, Field(ge=0)] | None = None  # its id; None: its number below
    name: ClassVar[str]
    reads: ClassVar[Reads]
    number: ClassVar[int]

    @property
    def id(self) -> int:
        """Its row of the task embedding."""
        return self.number if self.task is None else self.task

    @property
    def files(self) -> tuple[Path, ...]:
        """Files that its examples are made with."""
        return ()

    @property
    def classes(self) -> int:
        """How many classes its own head has; 0 where it needs none."""
        raise TypeError(f"the task {self.name} has no classes")

    def source(self, chosen: ChosenDocuments) -> ExampleSource:
        """Its examples from these documents."""
        raise TypeError(f"the task {self.name} has no examples")


class KnowledgeMasking(ContinualTask):
    """Predict masked words, phrases and entities: masking is a setting of the program."""

    name: ClassVar[str] = "knowledge"
    reads: ClassVar[Reads] = "masked"
    number: ClassVar[int] = 0

    @property
    def classes(self) -> int:
        """None: the vocabulary has a head of the model's own."""
        return 0

    def source(self, chosen: ChosenDocuments) -> ExampleSource:
        """Examples of the kind that `input` names."""
        return CorpusExamples(chosen.corpus, chosen.documents, chosen.inputs, seed=chosen.seed)


class CapitalTask(ContinualTask):
    """Is a word capitalized? Asked of the first token of every word with upper and lower case."""

    name: ClassVar[str] = "capital"
    reads: ClassVar[Reads] = "tokens"
    number: ClassVar[int] = 1

    @property
    def classes(self) -> int:
        """Small, capital."""
        return 2

    def source(self, chosen: ChosenDocuments) -> ExampleSource:
        """The examples of the masked task, unmasked."""
        examples = CorpusExamples(chosen.corpus, chosen.documents, chosen.inputs, seed=chosen.seed)
        return with_labels(examples, capital_labels(chosen.corpus))


class ElsewhereTask(ContinualTask):
    """Does a token occur in other parts of its document, too?"""

    name: ClassVar[str] = "elsewhere"
    reads: ClassVar[Reads] = "tokens"
    number: ClassVar[int] = 2

    @property
    def classes(self) -> int:
        """No, yes."""
        return 2

    def source(self, chosen: ChosenDocuments) -> ExampleSource:
        """Sentences of documents that have more of them."""
        short = chosen.inputs.short
        examples = _planned(
            chosen,
            lambda view, room, key: parts_of_documents(view, room, short, key),
            self.name,
            "every document fits one example, so no token can be elsewhere",
        )
        return with_labels(examples, elsewhere_labels(chosen.corpus))


class ReorderTask(ContinualTask):
    """In which order did up to three segments of a paragraph stand? Nine classes."""

    name: ClassVar[str] = "reorder"
    reads: ClassVar[Reads] = "text"
    number: ClassVar[int] = 3

    @property
    def classes(self) -> int:
        """1! + 2! + 3!."""
        return len(ORDERS)

    def source(self, chosen: ChosenDocuments) -> ExampleSource:
        """Paragraphs in segments that changed places."""
        short = chosen.inputs.short
        return _planned(
            chosen,
            lambda view, room, key: reordered(view, room, short, key),
            self.name,
            "no document has two sentences that fit one example",
        )


class DistanceTask(ContinualTask):
    """Are two sentences neighbors, of one document, or of two?"""

    name: ClassVar[str] = "distance"
    reads: ClassVar[Reads] = "text"
    number: ClassVar[int] = 4

    @property
    def classes(self) -> int:
        """Neighbors, the same document, another one."""
        return DISTANCES

    def source(self, chosen: ChosenDocuments) -> ExampleSource:
        """Pairs of sentences."""
        return _planned(chosen, distances, self.name, "no document has two sentences", paired=True)


class RelationTask(ContinualTask):
    """How are two texts related? By markers taken out of text, or by a file of labeled pairs."""

    name: ClassVar[str] = "relation"
    reads: ClassVar[Reads] = "text"
    number: ClassVar[int] = 5
    markers: str = "en"  # a shipped list, en or zh, or a file of lines `marker TAB relation`
    pairs: str | None = None  # a file of lines `text TAB text TAB relation`, instead of markers

    @cached_property
    def labeled(self) -> LabeledPairs | None:
        """The labeled pairs, if a file of them is named."""
        return None if self.pairs is None else LabeledPairs.read(Path(self.pairs))

    @cached_property
    def listed(self) -> MarkerList:
        """The list of markers."""
        return read_markers(self.markers)

    @property
    def files(self) -> tuple[Path, ...]:
        """The pairs, or a list of one's own."""
        if self.pairs is not None:
            return (Path(self.pairs),)
        path = Path(self.markers)
        return (path,) if path.is_file() else ()

    @property
    def classes(self) -> int:
        """The relations of the list or of the pairs."""
        return len(self.listed.relations if self.labeled is None else self.labeled.labels)

    def source(self, chosen: ChosenDocuments) -> ExampleSource:
        """Texts that a marker joined, or the rows of the file."""
        if self.labeled is not None:
            return _pair_examples(self.labeled, chosen, self.name)
        finder = MarkerFinder(self.listed, chosen.corpus.tokenizer())
        setting = "program.objectives.relation.markers is en, zh or a file"
        empty = f"none of the markers of {self.markers!r} joins two texts ({setting})"
        return _planned(
            chosen, lambda view, room, key: finder.plan(view, room), self.name, empty, paired=True
        )


class RelevanceTask(ContinualTask):
    """Is a title what a query looked for? 0, 1 or 2, from a file of labeled pairs."""

    name: ClassVar[str] = "relevance"
    reads: ClassVar[Reads] = "text"
    number: ClassVar[int] = 6
    pairs: str  # a file of lines `query TAB title TAB 0|1|2`

    @cached_property
    def labeled(self) -> LabeledPairs:
        """The labeled pairs."""
        return LabeledPairs.read(Path(self.pairs), RELEVANCE)

    @property
    def files(self) -> tuple[Path, ...]:
        """The pairs."""
        return (Path(self.pairs),)

    @property
    def classes(self) -> int:
        """Three."""
        return len(RELEVANCE)

    def source(self, chosen: ChosenDocuments) -> ExampleSource:
        """The rows of the file."""
        return _pair_examples(self.labeled, chosen, self.name)


def _planned(
    chosen: ChosenDocuments,
    planner: Callable[[CorpusView, int, int], Plan],
    name: str,
    empty: str,
    *,
    paired: bool = False,
) -> ExampleSource:
    return PlannedExamples(
        chosen.corpus,
        chosen.documents,
        planner,
        paired=paired,
        max_length=chosen.inputs.max_length,
        empty=f"{name}: {empty}; set program.objectives.{name}=0, or give other text",
        seed=chosen.seed,
    )


def _pair_examples(labeled: LabeledPairs, chosen: ChosenDocuments, name: str) -> ExampleSource:
    part = labeled.part(chosen.held_out, training=chosen.training)
    if not part.texts:
        raise ConfigError(
            f"{labeled.path} has too few rows for {name} to train on some and hold out others; "
            "give more, or set eval.held_out=0"
        )
    return PairExamples(
        part, chosen.corpus.tokenizer(), max_length=chosen.inputs.max_length, seed=chosen.seed
    )
