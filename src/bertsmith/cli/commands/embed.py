"""`bertsmith embed`: a file of texts of any size to a matrix of vectors."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bertsmith.cli.shared.console import write_remarks
from bertsmith.cli.shared.data_options import FirstRows, TextOptions, open_texts
from bertsmith.cli.shared.inference import ComputeOptions, load_encoder
from bertsmith.cli.shared.options import ModelArgument, Quiet
from bertsmith.cli.shared.options_of import spread
from bertsmith.errors import ConfigError, WriteError
from bertsmith.setting import MODEL, OUTPUT, Setting

if TYPE_CHECKING:
    from bertsmith.labeled.texts import Texts
    from bertsmith.runtime.embedder import Embedder, EncodingAccount
    from bertsmith.runtime.word_embedder import LayerChoice

File = Annotated[
    str,
    typer.Argument(
        metavar="FILE",
        help="Texts: .txt (one per line), .tsv, .csv or .jsonl, each also .gz or .zst; - is stdin.",
    ),
]
Out = Annotated[
    Path,
    Setting(
        "Output: vectors as .npy (float32), .tsv or .jsonl; replaced when the new one is complete.",
        OUTPUT,
        metavar="FILE",
    ),
]
Prompt = Annotated[str | None, Setting("Name of the model's prompt in front of the texts.", MODEL)]


@dataclass(frozen=True, slots=True, kw_only=True)
class EncodeOptions(ComputeOptions):
    """How a text becomes a vector."""

    prompt: Prompt = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WordOutput:
    """Vectors of words instead of texts."""

    words: Annotated[
        bool,
        Setting(
            "One row per word, by ELMo or word vectors; FILE.words.tsv lists the words.", OUTPUT
        ),
    ] = False
    layer: Annotated[
        str | None,
        Setting(
            "Layer of the words' vectors: a number (0: the words themselves), mean, or all side by "
            "side. With --words.",
            OUTPUT,
            metavar="LAYER",
        ),
    ] = None


@spread
def embed(
    model: ModelArgument,
    file: File,
    out: Out,
    reading: TextOptions,
    computing: EncodeOptions,
    output: WordOutput,
    rows: FirstRows = None,
    quiet: Quiet = False,
) -> None:
    """Turn a file of texts into a matrix of vectors, one row per text, in the order of the file.

    Memory is bounded for any file size. Truncated texts are counted and reported at the end. With
    --words there is a row per word, from ELMo (in its context) or word vectors.

    Examples:

        bertsmith embed all-MiniLM-L6-v2 texts.txt --out vectors.npy

        bertsmith embed my-elmo texts.txt --words --layer all --out words.npy
    """
    from bertsmith.cli.shared.console import note
    from bertsmith.files.vectors import check_target

    check_target(out)
    _check_source(file, out)
    if output.words:
        _embed_words(model, file, out, reading, computing, output.layer, rows, quiet)
        return
    if output.layer is not None:
        raise ConfigError("--layer chooses the layer of words: give --words with it")
    with open_texts(file, reading, rows=rows, quiet=quiet) as texts:
        from bertsmith.runtime.embedder import EncodingAccount  # torch: faults of files show first

        embedder = load_encoder(model, computing, quiet=quiet)
        account = EncodingAccount()
        _check_prompt(embedder, computing.prompt)
        start = time.perf_counter()
        shape = _embed(embedder, texts, out, computing.prompt, account, quiet=quiet)
    for remark in texts.account.notes():
        note(remark, quiet=quiet)
    if not quiet:
        write_remarks(summary(account, out, shape, time.perf_counter() - start))


def _embed(
    embedder: Embedder,
    texts: Texts,
    out: Path,
    prompt: str | None,
    account: EncodingAccount,
    *,
    quiet: bool,
) -> tuple[int, int]:
    from bertsmith.cli.views.progress import meter

    with meter("embed", quiet=quiet) as shown:

        def progress(done: int) -> None:
            # The reader runs ahead of the encoder by a block: scale its place in the file back.
            ahead = texts.account.texts
            shown(done, texts.share and texts.share * min(1.0, done / max(1, ahead)))

        return _write(embedder, texts, out, prompt, progress, account)


def summary(
    account: EncodingAccount, out: Path, shape: tuple[int, int], seconds: float
) -> list[str]:
    """What was done, in a few lines for people."""
    from bertsmith.wording import duration

    rate = account.texts / max(seconds, 1e-9)
    lines = [
        f"{out}: {shape[0]:,} x {shape[1]} in {duration(seconds)}, {rate:,.0f} texts/s, "
        f"{account.engine}"
    ]
    if account.distinct < account.texts:
        saved = account.texts - account.distinct
        lines.append(f"  {saved:,} of them were duplicates and were computed once")
    if account.preparation > 0.5:
        spent = duration(account.preparation)
        lines.append(f"  {spent} of this built and tested {account.engine}, once per machine")
    if account.cut_texts:
        lines.append(f"  {account.cuts()}")
        lines.append("  (split long texts into shorter ones before embedding to keep every token)")
    lines.append(f"  {account.unknown}")
    return lines


def _check_source(file: str, out: Path) -> None:
    source = Path(file)
    if file != "-" and out.exists() and source.exists() and out.samefile(source):
        raise WriteError(f"{out} is the input file itself; choose another --out")


def _check_prompt(embedder: Embedder, prompt: str | None) -> None:
    """Refuse an unknown prompt even when the file turns out to be empty."""
    known = embedder.settings.prompts
    if prompt is not None and prompt not in known:
        named = f"it has {', '.join(sorted(known))}" if known else "it has none"
        raise ConfigError(f"the model has no prompt called {prompt!r}; {named}")


def _write(
    embedder: Embedder,
    texts: Texts,
    out: Path,
    prompt: str | None,
    progress: Callable[[int], None],
    account: EncodingAccount,
) -> tuple[int, int]:
    from bertsmith.files.vectors import VectorWriter

    with VectorWriter(out, embedder.dimension) as writer:
        blocks = embedder.encode_stream(texts, prompt=prompt, progress=progress, account=account)
        for vectors in blocks:
            writer.append(vectors)
    return writer.rows, writer.width


def _embed_words(
    model: str,
    file: str,
    out: Path,
    reading: TextOptions,
    computing: EncodeOptions,
    layer: str | None,
    rows: int | None,
    quiet: bool,
) -> None:
    """Vectors of words, and the list of the words next to them."""
    from bertsmith.cli.shared.console import note

    if computing.prompt is not None:
        raise ConfigError("--prompt is put before texts, and words are embedded: leave it out")
    choice = _layer(layer or "mean")
    start = time.perf_counter()
    with open_texts(file, reading, rows=rows, quiet=quiet) as texts:
        from bertsmith.cli.views.progress import meter
        from bertsmith.runtime.word_embedder import load_words
        from bertsmith.runtime.word_files import write_words

        embedder = load_words(model, device=computing.device, precision=computing.precision)
        with meter("embed", quiet=quiet) as shown:
            done = write_words(
                embedder, texts, out, layer=choice, progress=lambda many: shown(many, texts.share)
            )
    for remark in texts.account.notes():
        note(remark, quiet=quiet)
    if quiet:
        return
    from bertsmith.wording import duration

    spent = duration(time.perf_counter() - start)
    write_remarks(
        [
            f"{out}: {done.words:,} words of {done.texts:,} texts x {done.width} in {spent}",
            f"{done.listed}: text, start, end and word of each row",
            f"  {done.unknown}",
        ]
    )


def _layer(name: str) -> LayerChoice:
    if name == "all":
        return "all"
    if name == "mean":
        return "mean"
    if not name.isdecimal():
        raise ConfigError(f"--layer is {name!r}; give all, mean, or the number of a layer")
    return int(name)
