"""`bertsmith demo`: Python's own documentation as an index and a map, and two models from it."""

from __future__ import annotations

import json
import logging
import shlex
import shutil
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from bertsmith.cli.shared.console import rich_console
from bertsmith.cli.shared.options_of import spread
from bertsmith.setting import DATA, MODEL, OUTPUT, TRAINING, Setting

if TYPE_CHECKING:
    from rich.console import Console

    from bertsmith.demo.library_docs import Passage
    from bertsmith.runtime.loading import LoadedModel
    from bertsmith.search.index import Index

QUESTIONS = (
    "How do I count how often each element occurs in a list?",
    "How do I start another program and capture its output?",
    "How do I make a temporary folder that deletes itself?",
)
ANSWERS = 3
SENTENCES = (
    "Wait until the server has closed the connection.",
    "Round a value to the nearest even integer.",
)

Model = Annotated[str, Setting("Model folder or name.", MODEL, metavar="MODEL")]
Out = Annotated[Path, Setting("Output: a folder.", OUTPUT, metavar="DIR")]
Ask = Annotated[
    list[str] | None,
    Setting("Your own question; repeatable. Skips map and training.", DATA),
]
Seconds = Annotated[float, Setting("Seconds of pre-training; 0 skips it.", TRAINING, min=0)]


@spread
def demo(
    model: Model = "all-MiniLM-L6-v2",
    out: Out = Path("demo_out"),
    ask: Ask = None,
    pretrain_seconds: Seconds = 60.0,
) -> None:
    """Search Python's documentation, draw a map of it, fine-tune and pre-train on it, offline."""
    from bertsmith.demo.library_docs import passages

    # Truncation is part of the report below.
    logging.getLogger("bertsmith.runtime.embedder").setLevel(logging.ERROR)
    console = rich_console(markup=True, soft_wrap=not sys.stdout.isatty())
    console.print("[bold]bertsmith demo[/]: questions to Python's own documentation\n")
    loaded = _loaded(console, model)
    found = passages()
    with _indexed(console, loaded, found, out) as index:
        for question in ask or QUESTIONS:
            _answer(console, index, question)
    if not ask:
        _mapped(console, found, loaded, out)
        _finetuned(console, found, model, out)
    if pretrain_seconds and not ask:
        _pretrained(console, found, out, pretrain_seconds)
    console.print(f"\nEverything is in [bold]{out}[/]. Ask your own:")
    console.print('  bertsmith demo --ask "How do I round a number to two digits?"')
    console.print("Serve what was made, with a page to try it:")
    made = [str(out / name) for name in ("classifier", "bert") if (out / name).is_dir()]
    words = ["bertsmith", "serve", model, *made, "--index", str(out / "index")]
    console.print(f"  {shlex.join(words)}", markup=False)


def _loaded(console: Console, model: str) -> LoadedModel:
    start = time.perf_counter()
    from bertsmith.runtime.loading import load  # torch: the larger part of the start

    imported = time.perf_counter() - start
    start = time.perf_counter()
    loaded = load(model, notice=lambda message: console.print(f"  {message}", markup=False))
    seconds = time.perf_counter() - start
    console.print(f"load    {model} in {seconds:.1f} s (after {imported:.1f} s to import torch)")
    return loaded


def _indexed(console: Console, model: LoadedModel, found: list[Passage], out: Path) -> Index:
    """Passages in a file, and an index of it."""
    from bertsmith.api.search import build_index
    from bertsmith.cli.views.progress import meter
    from bertsmith.files.atomic_folder import make_folder
    from bertsmith.labeled.spec import DataSpec
    from bertsmith.runtime.embedder import EncodingAccount
    from bertsmith.search.index import Index

    make_folder(out)
    passages, folder = out / "passages.jsonl", out / "index"
    _keep_passages(found, passages)
    shutil.rmtree(folder, ignore_errors=True)  # another Python may have other passages
    with meter("index", quiet=not sys.stderr.isatty()) as shown:
        work = build_index(passages, model, folder, reading=DataSpec(text=("text",)), watch=shown)
    account = work.encoding or EncodingAccount()
    proof = f", after {account.preparation:.0f} s to test that engine, once"
    console.print(
        f"index   {len(found):,} passages, {account.tokens:,} tokens in {account.seconds:.1f} s: "
        f"[bold]{len(found) / account.seconds:,.0f} passages/s[/] ({account.engine})"
        + (proof if account.preparation > 0.5 else "")
    )
    console.print(f"cut     {account.cuts() or 'nothing: every passage fits'}")
    return Index.open(folder, model)


def _keep_passages(found: list[Passage], path: Path) -> None:
    from bertsmith.files.atomic_file import StagedFile

    rows = ({"source": passage.source, "text": passage.text} for passage in found)
    with StagedFile(path) as file:
        file.write("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode())


def _answer(console: Console, index: Index, question: str) -> None:
    from rich.markup import escape

    from bertsmith.demo.library_docs import Passage

    start = time.perf_counter()
    (hits,) = index.search(question, ANSWERS)
    milliseconds = 1000 * (time.perf_counter() - start)
    console.print(f"\n[bold cyan]? {escape(question)}[/]  [dim]{milliseconds:.0f} ms[/]")
    for hit in hits:
        passage = Passage(hit.meta["source"], hit.text)
        console.print(f"  [green]{hit.similarity:.2f}[/]  [bold]{escape(passage.source)}[/]")
        console.print(f"        [dim]{escape(_opening(passage))}[/]")


def _mapped(console: Console, found: list[Passage], model: LoadedModel, out: Path) -> None:
    """Docstrings as points on a page, colored by their part of the library."""
    from bertsmith.api.map import MapOptions, map_texts
    from bertsmith.cli.views.progress import stages
    from bertsmith.demo.library_parts import labeled_docstrings

    console.print("\n[bold]A map[/]: docstrings with similar vectors are near each other")
    with stages(quiet=not sys.stderr.isatty()) as watch:
        made = map_texts(
            labeled_docstrings(found),
            model,
            out / "map.html",
            options=MapOptions(title="Python's standard library", legend="part"),
            watch=watch,
        )
    console.print(f"map     {made.points:,} docstrings as points, by t-SNE and PCA")
    console.print(f"page    {made.path}")


def _finetuned(console: Console, found: list[Passage], model: str, out: Path) -> None:
    """A classifier of docstrings: rows, training, accuracy, its report."""
    from rich.markup import escape

    from bertsmith.cli.views.progress import watch_training
    from bertsmith.demo import finetuning
    from bertsmith.demo.library_parts import PARTS, write_parts
    from bertsmith.runtime.load_predictor import load_predictor

    console.print("\n[bold]A classifier[/]: which part of the library does a docstring come from?")
    rows = write_parts(found, out / "docstrings.csv")
    console.print(f"rows    {rows:,} docstrings of {len(set(PARTS.values()))} parts")
    folder = out / "classifier"
    start = time.perf_counter()
    with watch_training(folder, quiet=not sys.stderr.isatty()) as watch:
        result = finetuning.train(out / "docstrings.csv", model, folder, watch)
    record = result.record or {}
    training = record["training"]
    console.print(
        f"train   {training['steps']:,} steps of a head on {escape(Path(model).name)}, frozen, "
        f"{time.perf_counter() - start:.0f} s, evaluation included ({training['precision']})"
    )
    rows = record["data"]["rows"]["test"]
    words, majority = (finetuning.accuracy(result, one) for one in ("words", "majority"))
    console.print(
        f"test    [bold]accuracy {finetuning.accuracy(result):.2f}[/] on {rows} unseen "
        f"docstrings; TF-IDF linear model {words:.2f}, majority class {majority:.2f}"
    )
    for prediction, text in zip(load_predictor(folder).predict(SENTENCES), SENTENCES, strict=True):
        sure = "" if prediction.confidence is None else f" {prediction.confidence:.2f}"
        console.print(f"[bold cyan]? {escape(text)}[/]\n  {escape(str(prediction.value))}{sure}")
    console.print(f"report  {result.report}")
    console.print(f'Try:    bertsmith predict {folder} "Return the sine of x."', markup=False)


def _pretrained(console: Console, found: list[Passage], out: Path, seconds: float) -> None:
    """A vocabulary, shards, a minute of training, its curve, and three masks filled."""
    from rich.markup import escape

    from bertsmith.cli.views.progress import watch_training
    from bertsmith.demo import pretraining
    from bertsmith.report.curves import write_report

    console.print("\n[bold]A BERT of your own[/], from the same documentation")
    start = time.perf_counter()
    texts = [passage.text for passage in found]
    material = pretraining.prepare(texts, out / "passages.jsonl", out)
    console.print(
        f"corpus  {material.documents:,} documents, {material.tokens:,} tokens of a vocabulary of "
        f"{material.vocabulary:,}, in {time.perf_counter() - start:.1f} s"
    )
    folder = out / "bert"
    with watch_training(quiet=not sys.stderr.isatty()) as watch:
        outcome = pretraining.train(material, folder, seconds, watch)
    rate = outcome.tokens / max(outcome.seconds, 1e-9)
    console.print(
        f"train   {outcome.step:,} steps, {outcome.tokens:,} tokens in {outcome.seconds:.0f} s: "
        f"[bold]{rate:,.0f} tokens/s[/]"
    )
    console.print(f"loss    {pretraining.curve(folder)}", markup=False)
    if outcome.evaluation is not None:
        held_out = outcome.evaluation
        console.print(
            f"dev     loss {held_out.losses['mlm']:.2f}, accuracy {held_out.accuracy['mlm']:.2f} "
            f"on masked tokens; curves: {write_report(folder, 'bertsmith demo')}"
        )
    console.print("masks   the longest word of three held-out sentences")
    for hidden, filled in pretraining.fill_hidden(folder, material):
        guesses = ", ".join(f"{guess.token} {guess.score:.2f}" for guess in filled.guesses[0])
        console.print(f"[bold cyan]? {escape(hidden.text)}[/]\n  {escape(guesses)}")
        console.print(f"  masked was: {hidden.word}", style="dim")
    console.print("writes  a sentence by filling: one place after another is masked and drawn anew")
    console.print(f"[bold cyan]> {escape(pretraining.write_sentence(folder).text)}[/]")
    console.print(f'Try:    bertsmith fill {folder} "Return the [MASK] of the list."', markup=False)
    console.print(f"Try:    bertsmith generate {folder} --length 20 --fill-steps 500", markup=False)


def _opening(passage: Passage, length: int = 150) -> str:
    """The first words of a passage on one line, without the name that stands before them."""
    text = " ".join(passage.text.split())
    for prefix in (f"builtins.{passage.source}: ", f"{passage.source}: "):
        text = text.removeprefix(prefix)
    return text if len(text) <= length else text[: length - 1].rstrip() + "…"
