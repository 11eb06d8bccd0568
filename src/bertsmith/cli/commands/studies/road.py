"""`bertsmith road`: models from n-gram to BERT on the same documents, as one table."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from bertsmith.cli.commands.corpus import CorpusSegmenter, Files, TextReading
from bertsmith.cli.shared.options import Estimate, Json, Quiet, Set, Threads
from bertsmith.cli.shared.options_of import spread
from bertsmith.setting import DATA, MODEL, OUTPUT, TRAINING, Setting

if TYPE_CHECKING:
    from bertsmith.studies.road.request import RoadRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class RoadLength:
    """How long, by the clock or by steps, and the sizes."""

    budget: Annotated[
        str | None,
        Setting(
            "Training time instead of steps: 30m; tests are included.", TRAINING, metavar="TIME"
        ),
    ] = None
    steps: Annotated[
        int | None,
        Setting(
            "Number of training steps; of each neural model. Two runs give the same table.",
            TRAINING,
            min=1,
        ),
    ] = None
    size: Annotated[
        Literal["tiny", "mini", "small", "medium", "base", "large"],
        Setting("Model size, layers x width: that of GPT and BERT.", MODEL),
    ] = "tiny"
    vocab_size: Annotated[
        int, Setting("Vocabulary size, special tokens included.", MODEL, min=20)
    ] = 8_192
    seed: Annotated[int, Setting("Random seed.", TRAINING, min=0)] = 0
    set: Set = None
    threads: Threads = None
    estimate: Estimate = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RoadTestFiles:
    """Files of further tests."""

    probe: Annotated[
        Path | None,
        Setting("Labeled rows of a probe.", DATA, metavar="FILE"),
    ] = None
    word_pairs: Annotated[
        list[Path] | None,
        Setting("Pairs of words with ratings; repeatable.", DATA, metavar="FILE"),
    ] = None
    analogies: Annotated[
        list[Path] | None,
        Setting("Analogies of four words; repeatable.", DATA, metavar="FILE"),
    ] = None


RoadFolder = Annotated[
    Path, Setting("Output: the folder of the road; it resumes from there.", OUTPUT, metavar="DIR")
]


@dataclass(frozen=True, slots=True, kw_only=True)
class RoadReading(TextReading):
    """How the documents are read and written."""

    segmenter: CorpusSegmenter = "auto"
    cased: Annotated[bool, Setting("Keep upper case.", DATA)] = False


@spread
def road(
    files: Files,
    out: RoadFolder,
    reading: RoadReading,
    length: RoadLength,
    tests: RoadTestFiles,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Train n-gram, word2vec, NNLM, LSTM, ELMo, GPT and BERT on the same documents; one table.

    Documents are split once; one in ten is held out. Left-to-right models predict the same pieces
    of one tokenizer and are ranked; BERT's pseudo-perplexity and ELMo's two directions stand apart.
    Further columns: similarity and analogies on the words that all models know, a classification
    probe, a sense test, time and size. The same command resumes.

    Examples:

        bertsmith road reviews.csv.gz --text review --budget 30m --out road

        bertsmith road books.txt --steps 200 --word-pairs ws353.txt --out road

        bertsmith road reviews.csv --text review --budget 1h --probe reviews.csv --out road
    """
    from bertsmith.cli.shared.console import note
    from bertsmith.cli.shared.studies import StudyCommand
    from bertsmith.studies.road.study import RUN, read_road

    request = _request(files, out, reading, length, tests)
    StudyCommand(
        run=RUN.model_copy(update={"threads": length.threads}),
        out=out,
        as_json=as_json,
        quiet=quiet,
        estimate=length.estimate,
    ).print(lambda process: read_road(request, notice=lambda line: note(line, quiet=quiet)))


def _request(
    files: list[str],
    out: Path,
    reading: RoadReading,
    length: RoadLength,
    tests: RoadTestFiles,
) -> RoadRequest:
    """What was given, as the library takes it."""
    from bertsmith.corpus.sources import CorpusSettings
    from bertsmith.errors import ConfigError
    from bertsmith.studies.road.request import RoadRequest
    from bertsmith.training.loop.schedule import seconds

    try:
        budget = None if length.budget is None else float(seconds(length.budget))
    except ValueError as fault:
        raise ConfigError(f"--budget: {fault}") from fault
    return RoadRequest(
        files=[Path(file) for file in files],
        out=out,
        budget=budget,
        steps=length.steps,
        reading=CorpusSettings(
            form=reading.form,
            reading=reading.spec(),
            on_error=reading.on_error,
            segmenter=reading.segmenter,
        ),
        lower=not reading.cased,
        vocab_size=length.vocab_size,
        size=length.size,
        labels=tests.probe,
        similarity=tests.word_pairs or (),
        analogies=tests.analogies or (),
        settings=length.set or (),
        seed=length.seed,
    )
