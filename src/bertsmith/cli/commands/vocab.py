"""`bertsmith vocab`: learn a vocabulary from your own files."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

import typer

from bertsmith.cli.shared.console import note
from bertsmith.cli.shared.data_options import FirstRows, TextOptions, open_texts
from bertsmith.cli.shared.options_of import spread
from bertsmith.setting import OUTPUT, TRAINING, Setting

app = typer.Typer(help="Learn a vocabulary from your own files.", no_args_is_help=True)


Files = Annotated[
    list[str],
    typer.Argument(
        metavar="FILES", help="Files of texts (.txt .tsv .csv .jsonl, also .gz, .zst); - is stdin."
    ),
]
VocabSize = Annotated[int, Setting("Vocabulary size, special tokens included.", TRAINING)]
Out = Annotated[
    Path,
    Setting(
        "Output: the tokenizer folder; an older vocabulary is replaced as a whole.",
        OUTPUT,
        metavar="DIR",
    ),
]
Kind = Annotated[
    Literal["wordpiece", "byte-bpe", "unigram", "xlnet"],
    Setting(
        "Kind of tokenizer: wordpiece (BERT), byte-bpe (RoBERTa), unigram (ALBERT) or xlnet "
        "(unigram with its special tokens).",
        TRAINING,
    ),
]
Lowercase = Annotated[
    bool | None,
    Setting(
        "Lowercase the text (default, except for byte-bpe and xlnet).",
        TRAINING,
        flag="--lowercase/--cased",
    ),
]
MinFrequency = Annotated[int, Setting("Minimum frequency of a merged pair.", TRAINING, min=0)]


@app.callback()
def vocab() -> None:
    """Learn a vocabulary from your own files."""


@app.command()
@spread
def learn(
    files: Files,
    vocab_size: VocabSize,
    out: Out,
    reading: TextOptions,
    tokenizer: Kind = "wordpiece",
    lowercase: Lowercase = None,
    min_frequency: MinFrequency = 2,
    rows: FirstRows = None,
) -> None:
    """Learn a vocabulary and write it as a tokenizer folder, which transformers can load.

    The same text always gives the same bytes.

    Examples:

        bertsmith vocab learn corpus.txt --vocab-size 8000 --out my-vocab

        bertsmith vocab learn a.txt b.jsonl.gz --text body --vocab-size 32000 --cased --out my-vocab
    """
    from bertsmith.files.atomic_folder import check_target
    from bertsmith.text.learn import learn_vocabulary
    from bertsmith.text.tokenizer_files import FILES

    check_target(out.absolute(), overwrite=True, only=FILES)  # before the work, not after it
    learned = learn_vocabulary(
        _lines(files, reading, rows),
        kind=tokenizer,
        size=vocab_size,
        lowercase=lowercase,
        min_count=min_frequency,
        progress=_LearningProgress(),
    )
    learned.save(out)
    fewer = f", fewer than the {vocab_size:,} requested" if learned.vocab_size < vocab_size else ""
    note(f"wrote {learned.vocab_size:,} tokens{fewer} to {out}")


class _LearningProgress:
    """Shows a stage of learning at most once per second, on standard error."""

    def __init__(self) -> None:
        self._stage = ""
        self._shown = 0.0

    def __call__(self, stage: str, done: int, total: int | None) -> None:
        now = time.monotonic()
        if stage == self._stage and now - self._shown < 1.0:
            return
        self._stage, self._shown = stage, now
        note(f"{stage}: {done:,}" + (f" of {total:,}" if total else "") if done else stage)


def _lines(files: list[str], reading: TextOptions, rows: int | None) -> Iterator[str]:
    for file in files:
        with open_texts(file, reading, rows=rows) as texts:
            yield from texts
        for remark in texts.account.notes():
            note(f"{file}: {remark}")
