"""`bertsmith lm train`: text in, a language model of any kind out; resumes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from bertsmith.cli.commands.corpus import CorpusSegmenter, Files, TextReading
from bertsmith.cli.shared.console import write_lines, write_remarks
from bertsmith.cli.shared.data_options import MaxWords
from bertsmith.cli.shared.options import Quiet, RunFolder, Set
from bertsmith.cli.shared.options_of import spread
from bertsmith.config import Override
from bertsmith.setting import DATA, MODEL, OUTPUT, Setting


@dataclass(frozen=True, slots=True, kw_only=True)
class WordOptions:
    """What a word is, and which are kept."""

    word_split: Annotated[
        Literal["words", "letters", "spaces"],
        Setting(
            "words: punctuation stands apart; letters: it is left out; spaces: the text is "
            "tokenized already.",
            DATA,
        ),
    ] = "words"
    segmenter: CorpusSegmenter = "auto"
    lower: Annotated[bool, Setting("Lower case.", DATA)] = False
    pieces: Annotated[
        str | None,
        Setting("Tokenizer folder or model whose pieces are the words.", DATA, metavar="MODEL"),
    ] = None
    min_count: Annotated[
        int, Setting("Minimum frequency of a word; rarer ones become <unk>.", DATA, min=1)
    ] = 1
    max_words: MaxWords = None
    word_stream: Annotated[
        Path | None,
        Setting(
            "Keep the words of the text in this folder, and use it if it is there.",
            OUTPUT,
            metavar="DIR",
        ),
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class KindOptions:
    """Which kind of model, and its settings."""

    kind: Annotated[
        str, Setting("Kind of model: ngram, nnlm, lstm, gru, elmo or gpt.", MODEL, metavar="KIND")
    ] = "ngram"
    order: Annotated[
        int | None, Setting("Longest n-gram: the same as --set order=N.", MODEL, min=1)
    ] = None
    set: Set = None

    def settings(self) -> dict[str, Any]:
        """All of them by name."""
        given = {one.name: one.value for one in map(Override.parse, self.set or ())}
        return given if self.order is None else {**given, "order": self.order}


HeldOut = Annotated[
    list[Path] | None,
    Setting("Text that is not trained on.", DATA, metavar="FILE"),
]


@spread
def train(
    files: Files,
    out: RunFolder,
    reading: TextReading,
    word: WordOptions,
    kind: KindOptions,
    held_out: HeldOut = None,
    quiet: Quiet = False,
) -> None:
    """Train a language model on files of text; the same command resumes.

    Perplexities can be compared when --word-split, --pieces, --min-count and --max-words are the
    same.

    Examples:

        bertsmith lm train books.txt --kind ngram --order 5 --out kn5

        bertsmith lm train reviews.csv.gz --text review --kind lstm --max-words 10000 --out lstm

        bertsmith lm train books.txt --form sentences --kind gpt --pieces my-bert --out gpt
    """
    from bertsmith.api.language_models import LmRequest, train_language_model
    from bertsmith.classic.stream.stream import WordReading, WordStream
    from bertsmith.cli.views.perplexity import score_text
    from bertsmith.cli.views.progress import meter, watch_training
    from bertsmith.folders.read import load_tokenizer

    request = LmRequest(
        files=[Path(file) for file in files],
        kind=kind.kind,
        out=out,
        settings=kind.settings(),
        held_out=held_out or (),
        reading=WordReading(
            form=reading.form,
            reading=reading.spec(),
            on_error=reading.on_error,
            segmenter=word.segmenter,
            split=word.word_split,
        ),
        min_count=word.min_count,
        most=word.max_words,
        lower=word.lower,
        tokenizer=None if word.pieces is None else load_tokenizer(word.pieces),
        words=word.word_stream,
    )

    def heard(stream: WordStream) -> None:
        if not quiet:
            write_remarks(stream.account_lines())

    with meter("words", quiet=quiet) as shown, watch_training(out, quiet=quiet) as watch:
        found = train_language_model(request, progress=shown, heard=heard, watch=watch)
    figures = [] if found is None else score_text(found)
    write_lines(
        [*figures, f"{out}: language model ({kind.kind}); next: bertsmith lm perplexity {out} FILE"]
    )
