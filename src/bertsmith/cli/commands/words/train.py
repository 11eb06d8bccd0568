"""`bertsmith words train`: text in, a folder of word vectors out; resumes after an epoch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from bertsmith.classic.word2vec.settings import Word2VecSettings
from bertsmith.cli.commands.corpus import Files, TextReading
from bertsmith.cli.commands.lm.train import WordOptions
from bertsmith.cli.shared.console import write_json, write_lines, write_remarks
from bertsmith.cli.shared.options import Json, Quiet, RunFolder, Threads
from bertsmith.cli.shared.options_of import spread
from bertsmith.setting import COMPUTE, DATA, Setting

if TYPE_CHECKING:
    from bertsmith.api.word_vectors import WordChoice
    from bertsmith.classic.word2vec.folder import TrainedWords
    from bertsmith.classic.word2vec.train import WordProgress, WordWatcher


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorWordOptions(WordOptions):
    """What a word is, and which get a vector."""

    min_count: Annotated[
        int, Setting("Minimum frequency of a word; rarer ones are left out.", DATA, min=1)
    ] = 5

    def choice(self, text: TextReading) -> WordChoice:
        """The words of files that are read so."""
        from bertsmith.api.word_vectors import WordChoice
        from bertsmith.classic.stream.stream import WordReading

        tokenizer = None
        if self.pieces is not None:
            from bertsmith.folders.read import load_tokenizer

            tokenizer = load_tokenizer(self.pieces)
        return WordChoice(
            reading=WordReading(
                form=text.form,
                reading=text.spec(),
                on_error=text.on_error,
                segmenter=self.segmenter,
                split=self.word_split,
            ),
            min_count=self.min_count,
            most=self.max_words,
            lower=self.lower,
            tokenizer=tokenizer,
            words=self.word_stream,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class WordCompute:
    """Where training runs."""

    threads: Threads = None
    engine: Annotated[
        Literal["auto", "avx512", "avx2", "torch"],
        Setting(
            "auto: the fastest kernel proven on this machine, torch without a C++ compiler.",
            COMPUTE,
        ),
    ] = "auto"


@spread
def train(
    files: Files,
    out: RunFolder,
    reading: TextReading,
    word: VectorWordOptions,
    settings: Word2VecSettings,
    compute: WordCompute,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Train word2vec on files of text; the same command resumes after the last whole epoch.

    The folder holds vectors.bin, which gensim and other programs read. With --threads 1 a run
    repeats bit for bit; several threads share the vectors without locks and never do.

    Examples:

        bertsmith words train reviews.txt --lower --out vectors

        bertsmith words train books/ --kind cbow --loss hierarchical --dim 300 --out vectors

        bertsmith words train news.jsonl --text body --segmenter jieba --out vectors
    """
    from bertsmith.api.word_vectors import train_word_vectors
    from bertsmith.cli.views.progress import meter

    silent = quiet or as_json
    with meter("words", quiet=silent) as shown, _watching(quiet=silent) as watch:
        trained = train_word_vectors(
            files,
            out,
            settings=settings,
            options=word.choice(reading),
            threads=compute.threads,
            engine=compute.engine,
            progress=shown,
            watch=watch,
        )
    if as_json:
        write_json({"out": str(out), "losses": trained.losses, **trained.facts})
        return
    _show(trained, out, quiet=quiet)


@contextmanager
def _watching(*, quiet: bool) -> Iterator[WordWatcher | None]:
    """Epoch, words per second and time left; the loss of every epoch stays."""
    from bertsmith.cli.views.progress import display
    from bertsmith.wording import duration

    with display(quiet=quiet) as view:
        if view is None:
            yield None
            return
        shown: list[float] = []

        def watch(look: WordProgress) -> None:
            if look.loss is not None and look.loss not in shown:
                shown.append(look.loss)
                view.write([f"epoch {look.epoch} of {look.epochs}: loss {look.loss:.4f}"])
            details = f"{look.words_per_second:,.0f} words/s"
            if look.left < float("inf"):
                details += f", {duration(look.left)} left"
            view.show(f"epoch {look.epoch} of {look.epochs}", look.share, details)

        yield watch


def _show(trained: TrainedWords, out: Path, *, quiet: bool) -> None:
    vectors = trained.vectors
    facts = trained.facts
    if not quiet and facts.get("cut_lines"):
        write_remarks(
            [f"{facts['cut_lines']:,} lines of more than 1,000 words were cut into pieces"]
        )
    losses = ", ".join(f"{loss:.4f}" for loss in trained.losses)
    write_lines(
        [
            f"loss per prediction, by epoch: {losses}",
            f"{out}: {len(vectors):,} words, {vectors.dimension} numbers each; next: bertsmith "
            f"words near {out} {vectors.words[min(20, len(vectors) - 1)]}",
        ]
    )
