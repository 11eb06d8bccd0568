"""A whole record of a fine-tuned model, as proof.json holds it, for the tests of its report."""

from __future__ import annotations

import json
from typing import Any

from proof_cases import CASES, Case

from bertsmith.evaluation.proof import baselines, prove
from bertsmith.labeled.split.splits import Splits
from bertsmith.labeled.survey.survey import survey
from bertsmith.report.finetune.page import finetune_sections
from bertsmith.report.training_page import training_page


def finetune_page(record: dict[str, Any], *, title: str) -> str:
    """The page of a record, as training writes it."""
    return training_page(finetune_sections(record), title=title)


def finetune_record(name: str = "classify", case: Case | None = None) -> dict[str, Any]:
    """Everything a record can have; through JSON and back, as a reader gets it."""
    task, examples, said = case or CASES[name]()
    half = len(examples) // 2
    proofs = {
        "dev": prove(task, examples[:half], said[:half]).to_json(),
        "test": prove(task, examples[half:], said[half:]).to_json(),
    }
    figures = proofs["dev"]["figures"]
    found = {
        "bertsmith": "0.1.0",
        "task": name,
        "model": "bert-base-uncased",
        "data": {
            "files": {"train": "/home/a/data/train.tsv", "dev": "/home/a/data/dev.tsv"},
            "rows": {"train": half, "dev": half, "test": len(examples) - half},
            "spec": {"format": "delimited", "language": "en", "delimiter": "\t"},
        },
        "survey": survey(
            Splits(train=examples[:half], dev=examples[:half], test=examples[half:])
        ).to_json(),
        "lengths": {
            "limits": [64, 128],
            "chosen": {"max_length": 128},
            "splits": {
                "train": {
                    "rows": half,
                    "p50": 21,
                    "p95": 88,
                    "p99": 140,
                    "max": 512,
                    "cut": {"64": 0.21, "128": 0.02},
                }
            },
        },
        "recipe": {"optimizer": {"lr": 1e-4}, "length": {"max_length": 128}},
        "head": {"kind": "own", "reads": "the mean of all tokens, last layer"},
        "regularization": "hidden dropout 0.1",
        "training": {
            "steps": 120,
            "epochs": 4.0,
            "seconds": 83.2,
            "tokens": 240_000,
            "tokens_per_second": 2_900.0,
            "precision": "fp32",
            "threads": 2,
            "best_step": 90,
        },
        **proofs,
        "baselines": {
            split: baselines(name, examples[:half], rows)
            for split, rows in (("dev", examples[:half]), ("test", examples[half:]))
        },
        "curves": _curves(figures),
        "seeds": [{"seed": seed, "figures": figures} for seed in range(3)],
        "interval": {
            key: {"mean": value, "deviation": 0.01, "low": value, "high": value}
            for key, value in figures.items()
        },
        "chosen": 2,
        "folds": {
            "count": 2,
            "runs": [{"fold": 1, "figures": figures}, {"fold": 2, "figures": figures}],
            "figures": figures,
            "interval": {},
            "chosen": 1,
        },
    }
    return dict(json.loads(json.dumps(found)))


def _curves(figures: dict[str, float]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = [
        {"kind": "train", "step": step, "losses": {"task": 40 / (step + 20)}, "rate": 1e-4}
        for step in range(10, 121, 10)
    ]
    rows += [
        {"kind": "eval", "step": step, "losses": {"task": 0.9}, "figures": figures}
        for step in (30, 60, 90, 120)
    ]
    return sorted(rows, key=lambda row: int(row["step"]))
