"""Neural language models against Kneser-Ney, and GPT against Bengio's network, on reviews.

All sides know the same 10,000 words, begin anew at line ends, and are scored on the same
predictions, line ends included. Mixtures take their weights from validation text. GPT and Bengio's
network train with the same CPU seconds on the same rows of the same pieces.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from classic_text import (
    ClosedWords,
    PlainKneserNey,
    closed,
    closed_ids,
    closed_vocabulary,
    reviews,
)
from machine import machine_facts

WORDS, ORDER = 10_000, 5
TRAIN, TEST, VALID = 1_000_000, 100_000, 100_000
SETTINGS: dict[str, dict[str, Any]] = {
    "nnlm": {
        "width": 128,
        "hidden": 256,
        "dropout": 0.25,
        "plan": {"epochs": 5.0, "lines": 32},
    },
    "lstm": {
        "width": 256,
        "hidden": 256,
        "dropout": 0.3,
        "plan": {"epochs": 3.0, "lines": 32},
    },
}
ASKED = {"nnlm": 0.05, "lstm": 0.15}  # better than Kneser-Ney alone, in a mixture with it
PIECES, ROW = 4_000, 128
PIECE_ORDERS = (5, 10)  # of Bengio's network: pieces are shorter than words
TRIAL = 600  # steps that show what a step costs, its share of an evaluation included


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--kinds", nargs="*", default=list(SETTINGS), choices=SETTINGS)
    parser.add_argument("--gpt-steps", type=int, default=2000, help="0: without GPT")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("bench_out/classic_neural.json"))
    options = parser.parse_args()
    for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "BERTSMITH_THREADS"):
        os.environ[variable] = str(options.threads)
    import torch

    torch.set_num_threads(options.threads)
    report: dict[str, Any] = {"machine": machine_facts(options.threads)}
    parts = reviews(options.data, TRAIN, TEST, VALID)
    if options.kinds:
        report["words"] = by_words(parts, options.kinds)
    if options.gpt_steps:
        report["pieces"] = by_pieces(parts, options.gpt_steps, options.threads)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(report, indent=2) + "\n")
    print(f"written to {options.out}")
    return 0


def by_words(parts: Sequence[Any], kinds: Sequence[str]) -> dict[str, Any]:
    """Kneser-Ney, and each neural model alone and mixed with it."""
    from bertsmith.classic.neural.mixture import mixture_weights

    words = closed_vocabulary(parts[0].lines, WORDS)
    train, test, valid = (closed(part, words) for part in parts)
    print(
        f"{len(train.ids):,} words in {len(train.lines):,} lines, test {len(test.ids):,} words, "
        f"{len(test.ids) + len(test.lines):,} predictions, {len(words):,} words known, "
        f"{(test.ids == 0).mean():.1%} of the test unknown"
    )
    (plain, took) = timed(lambda: PlainKneserNey(train.lines, ORDER, words))
    base = {name: scores(plain, part) for name, part in (("test", test), ("valid", valid))}
    kneser_ney = perplexity(base["test"])
    print(f"Kneser-Ney, order {ORDER}: perplexity {kneser_ney:.2f} ({took['cpu']:.0f} CPU s)")
    report: dict[str, Any] = {"kneser_ney": kneser_ney}
    for kind in kinds:
        model, took = timed(lambda kind=kind: trained(kind, SETTINGS[kind], train, valid))
        own = {name: scores(model, part) for name, part in (("test", test), ("valid", valid))}
        share, _ = mixture_weights([own["valid"], base["valid"]])
        both = np.logaddexp(own["test"] + math.log(share), base["test"] + math.log(1 - share))
        gain = 1 - perplexity(both) / kneser_ney
        print(
            f"{kind}: alone {perplexity(own['test']):.2f}, mixed with Kneser-Ney "
            f"{perplexity(both):.2f} (weight {share:.2f}): {gain:.1%} better, "
            f"{ASKED[kind]:.0%} asked; {took['wall']:.0f} s, {took['cpu']:.0f} CPU s",
            flush=True,
        )
        report[kind] = {
            "alone": perplexity(own["test"]),
            "mixed": perplexity(both),
            "weight": share,
            "gain": gain,
            "settings": SETTINGS[kind],
            **took,
        }
    return report


def by_pieces(parts: Sequence[Any], steps: int, threads: int) -> dict[str, Any]:
    """GPT and Bengio's network on the same rows of pieces, with the same CPU seconds."""
    with tempfile.TemporaryDirectory(prefix="bertsmith-bench-") as work:
        shards = corpora(parts, Path(work))
        gpt, predictions, took = trained_gpt(shards, Path(work) / "gpt", steps, threads)
        rows = [piece_rows(shard) for shard in shards]
    order = np.argsort(-np.bincount(np.concatenate(rows[0]), minlength=PIECES), kind="stable")
    rank = np.empty(PIECES, dtype=np.int32)
    rank[order] = np.arange(PIECES)
    names = tuple(f"piece {number}" for number in order)
    train, test, valid = (closed_ids([rank[row] for row in part], names) for part in rows)
    print(
        f"GPT, {PIECES:,} pieces: perplexity {gpt:.2f} of {predictions:,} predictions; "
        f"{took['tokens']:,} tokens read, {took['cpu']:.0f} CPU s, {took['wall']:.0f} s",
        flush=True,
    )
    report: dict[str, Any] = {"gpt": {"perplexity": gpt, **took}}
    for reach in PIECE_ORDERS:
        plan = {"steps": TRIAL, "lines": 8, "window": ROW, "evaluations": 1}
        settings = {**SETTINGS["nnlm"], "order": reach, "plan": plan}
        _, trial = timed(lambda settings=settings: trained("nnlm", settings, train, valid))
        plan = {**plan, "steps": int(TRIAL * took["cpu"] / trial["cpu"]), "evaluations": 10}
        settings = {**settings, "plan": plan}
        model, used = timed(lambda settings=settings: trained("nnlm", settings, train, valid))
        found = scores(model, test)
        assert len(found) == predictions
        print(
            f"nnlm of order {reach} on the same pieces: perplexity {perplexity(found):.2f} of "
            f"{len(found):,} predictions; {plan['steps']:,} steps, {used['cpu']:.0f} CPU s, "
            f"{used['wall']:.0f} s",
            flush=True,
        )
        report[f"nnlm of order {reach}"] = {"perplexity": perplexity(found), **used}
    return report


def trained_gpt(
    shards: Sequence[Path], out: Path, steps: int, threads: int
) -> tuple[float, int, dict[str, float]]:
    """Perplexity on the second corpus of a GPT trained on the first, predictions, and cost."""
    from bertsmith.training.execution.execution import choose_execution
    from bertsmith.training.pretrain.pretrain import Job, pretrain
    from bertsmith.training.pretrain.recipe import load_recipe

    recipe = load_recipe(
        "gpt",
        [
            "model.size=tiny",
            f"schedule.steps={steps}",
            "batch.tokens=2048",
            "batch.micro_tokens=2048",
            f"input.max_length={ROW}",
            f"run.threads={threads}",
        ],
    )
    execution = choose_execution(recipe.run, out)
    job = Job(recipe=recipe, corpus=shards[0], out=out)
    outcome, took = timed(lambda: pretrain(job, execution=execution))
    found, predictions = gpt_perplexity(out, shards[1])
    return found, predictions, {**took, "tokens": outcome.tokens}


def corpora(parts: Sequence[Any], work: Path) -> list[Path]:
    """One tokenizer, learned from the first part, and the shards of every part."""
    from bertsmith.corpus.build import build_corpus
    from bertsmith.corpus.sources import CorpusSettings
    from bertsmith.text.learn import learn_vocabulary

    for number, part in enumerate(parts):
        part.write(work / f"{number}.txt")
    tokenizer = learn_vocabulary((" ".join(line) for line in parts[0].lines), size=PIECES)
    for number in range(len(parts)):
        build_corpus(
            [work / f"{number}.txt"],
            tokenizer,
            work / f"shards-{number}",
            CorpusSettings(form="sentences"),
        )
    return [work / f"shards-{number}" for number in range(len(parts))]


def piece_rows(shards: Path) -> list[np.ndarray]:
    """The pieces of each row without its first and last one, which are line ends of a network."""
    inputs = row_examples(shards)
    rows = inputs.examples(0, np.arange(inputs.count(0)))
    return [row[1:-1] for row in np.split(rows.ids, np.cumsum(rows.lengths)[:-1])]


def row_examples(shards: Path) -> Any:
    """The rows of a corpus as GPT reads them."""
    from bertsmith.corpus.examples import CorpusExamples, InputSettings
    from bertsmith.corpus.shards import open_corpus

    corpus = open_corpus(shards)
    shape = InputSettings(kind="full_sentences", max_length=ROW, short=0.0)
    return CorpusExamples(corpus, np.arange(len(corpus.documents) - 1), shape, seed=0)


def gpt_perplexity(folder: Path, shards: Path) -> tuple[float, int]:
    """Of every piece but the first of a row, the last one included."""
    import torch

    from bertsmith.folders.read import load_model
    from bertsmith.objectives.causal import NEXT, CausalProgram
    from bertsmith.objectives.program import PretrainModule

    inputs = row_examples(shards)
    program = CausalProgram()
    module = PretrainModule(program, load_model(str(folder)).model).eval()
    total, count = 0.0, 0
    with torch.no_grad():
        for some in np.array_split(np.arange(inputs.count(0)), max(1, inputs.count(0) // 32)):
            batch = program.prepare(inputs.examples(0, some))
            loss = program.losses(module, batch)[0][NEXT]
            total, count = total + float(loss.sum), count + loss.count
    return math.exp(total / count), count


def trained(kind: str, settings: dict[str, Any], train: ClosedWords, valid: ClosedWords) -> Any:
    """A model with the weights of least perplexity on validation text."""
    from bertsmith.classic.neural.learner import NeuralJob, neural_learner
    from bertsmith.classic.neural.settings import NEURAL_KINDS
    from bertsmith.config import validated
    from bertsmith.training.learner import run_job

    chosen = validated(NEURAL_KINDS[kind], settings, "benchmark")
    job = NeuralJob(stream=train, settings=chosen, held_out=valid)
    finished = run_job(neural_learner(), job).finished
    if finished is None:
        raise RuntimeError("training was stopped before its end")
    return finished.model


def scores(model: Any, part: ClosedWords) -> np.ndarray:
    return np.concatenate(model.log_probabilities(part.lines))


def perplexity(found: np.ndarray) -> float:
    return math.exp(-found.mean())


def timed(work: Callable[[], Any]) -> tuple[Any, dict[str, float]]:
    began, used = time.perf_counter(), time.process_time()
    result = work()
    return result, {"wall": time.perf_counter() - began, "cpu": time.process_time() - used}


if __name__ == "__main__":
    raise SystemExit(main())
