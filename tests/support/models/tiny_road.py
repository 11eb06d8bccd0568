"""A road of a few seconds: short documents, models of a few numbers."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from bertsmith.studies.road.request import RoadRequest

SETTINGS = (
    "ngram.order=3",
    "word2vec.dim=8",
    "word2vec.epochs=2",
    "nnlm.width=8",
    "nnlm.hidden=16",
    "lstm.width=8",
    "lstm.hidden=16",
    "elmo.model.hidden=16",
    "elmo.model.projection=8",
    "elmo.model.filters=[[1, 4], [2, 4]]",
    "gpt.model.layers=1",
    "gpt.model.hidden=16",
    "gpt.model.heads=2",
    "gpt.plan.lines=8",
    "bert.model.layers=1",
    "bert.model.hidden=16",
    "bert.model.heads=2",
    "bert.batch.tokens=256",
    "bert.batch.micro_tokens=256",
)
SUBJECTS = ("the cat", "a dog", "the king", "the queen", "a man", "a woman", "the boy", "the girl")
VERBS = ("sees", "likes", "hears", "finds")
OBJECTS = ("a red house", "the river", "some kind of tree", "a man who is kind", "water", "food")


def write_documents(folder: Path, documents: int = 40) -> None:
    """docs.txt, labels.tsv, similarity.txt and analogies.txt."""
    draw = random.Random(0)
    texts = []
    for _ in range(documents):
        label = draw.choice(("good", "bad"))
        mark = "nice" if label == "good" else "awful"
        lines = [
            f"{draw.choice(SUBJECTS)} {draw.choice(VERBS)} {draw.choice(OBJECTS)} , {mark} ."
            for _ in range(draw.randint(3, 6))
        ]
        texts.append((label, lines))
    folder.mkdir(parents=True, exist_ok=True)
    whole = "\n\n".join("\n".join(lines) for _, lines in texts)
    (folder / "docs.txt").write_text(whole + "\n", encoding="utf-8")
    rows = "".join(f"{' '.join(lines)}\t{label}\n" for label, lines in texts)
    (folder / "labels.tsv").write_text("text\tlabel\n" + rows, encoding="utf-8")
    rated = "cat dog 8\nking queen 9\nman woman 8.5\ncat river 1\nking food 0.5\n"
    (folder / "similarity.txt").write_text(rated, encoding="utf-8")
    asked = ": family\nking queen man woman\nboy girl man woman\n"
    (folder / "analogies.txt").write_text(asked, encoding="utf-8")


def tiny_request(material: Path, out: Path, **changes: Any) -> RoadRequest:
    """A road by steps over the documents of `write_documents`."""
    given: dict[str, Any] = {
        "files": [material / "docs.txt"],
        "out": out,
        "steps": 4,
        "vocab_size": 90,
        "labels": material / "labels.tsv",
        "similarity": [material / "similarity.txt"],
        "analogies": [material / "analogies.txt"],
        "settings": SETTINGS,
    }
    return RoadRequest(**{**given, **changes})
