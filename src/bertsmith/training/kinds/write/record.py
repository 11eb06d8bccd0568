"""What is proved of a model that writes: figures next to simple baselines, texts side by side."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from bertsmith.files.atomic_file import write_staged
from bertsmith.folders.extras import read_pair_task
from bertsmith.folders.generation import Writes, read_generation, read_writes
from bertsmith.folders.kinds import folder_kind, refusal
from bertsmith.folders.opened import OpenFolder
from bertsmith.folders.read import LoadedFolder, load_model
from bertsmith.labeled.pairs.pairs import SentenceData
from bertsmith.labeled.pairs.splits import PairSplits, evenly
from bertsmith.metrics.arrays import Floats, Ints
from bertsmith.metrics.significance import bootstrap
from bertsmith.metrics.written_text import WRITTEN, distinct
from bertsmith.runtime.generation.generator import TextGenerator
from bertsmith.tasks.write.arrange import arrangement_of
from bertsmith.tasks.write.encoding import PairEncoder, WritingLengths
from bertsmith.training.kinds.write.learner import FinishedWriter
from bertsmith.training.kinds.write.recipe import WriteRecipe
from bertsmith.training.kinds.write.written import (
    first_sentence,
    model_texts,
    text_generator,
    wrong_source,
)
from bertsmith.training.loop.run import Outcome
from bertsmith.training.record import Making, pairs_section

SAMPLES = 200  # draws of each interval
EXAMPLES = 30  # rows that the report shows
SHOWN = 600  # characters of a text in the record


@dataclass(frozen=True, slots=True, kw_only=True)
class WritingFolder:
    """A folder that was trained to write, as evaluation reads it."""

    loaded: LoadedFolder
    task: str
    writes: Writes
    lengths: WritingLengths

    @classmethod
    def at(cls, path: str | Path, *, device: str = "cpu") -> WritingFolder:
        """The folder at a path; one that was trained for something else is refused."""
        opened = OpenFolder.at(path)
        section = read_pair_task(opened.home)
        if section is None:
            raise refusal(path, folder_kind(opened), "write")
        home, loaded = opened.home, load_model(opened, device=device)
        lengths = WritingLengths(source=section["source_tokens"], target=section["target_tokens"])
        writes = read_writes(home) or Writes(by="shift")
        return cls(loaded=loaded, task=section["task"], writes=writes, lengths=lengths)

    @property
    def generator(self) -> TextGenerator:
        """What writes with the folder's model."""
        return text_generator(
            self.loaded.model,
            self.loaded.tokenizer,
            writes=self.writes,
            defaults=read_generation(self.loaded.folder),
        )

    def written(self, sources: Sequence[str]) -> list[str]:
        """The likeliest text for each source, greedily."""
        return model_texts(
            self.loaded.model,
            self.loaded.tokenizer,
            sources,
            writes=self.writes,
            defaults=read_generation(self.loaded.folder),
            lengths=self.lengths,
        )

    def evaluated(self, data: SentenceData, written: Sequence[str]) -> dict[str, Any]:
        """Figures of written rows, with what simple ways score and what other sources cost."""
        model, tokenizer = self.loaded.model, self.loaded.tokenizer
        sources, references = ([row[at] for row in data.rows] for at in (0, 1))
        table = WRITTEN.rows(references, written, ())
        figures = WRITTEN.figures(table, ())
        simple = {"copy": sources, "first_sentence": [first_sentence(text) for text in sources]}
        pairs = PairEncoder(tokenizer, model.spec).encode(data, self.lengths)
        arrangement = arrangement_of(model.spec, tokenizer, self.writes, share=1.0)
        return {
            "rows": len(data),
            "main": WRITTEN.main,
            "figures": {**figures, **_distinct(written)},
            "intervals": {name: _interval(table, name) for name in figures},
            "baselines": {
                name: {**WRITTEN.score(references, texts), **_distinct(texts)}
                for name, texts in simple.items()
            },
            "wrong_source": wrong_source(model, arrangement, pairs),
            "sources_cut": pairs.cut_rows,
            "examples": [
                {"source": s[:SHOWN], "written": w[:SHOWN], "reference": r[:SHOWN]}
                for s, w, r in list(zip(sources, written, references, strict=True))[:EXAMPLES]
            ],
        }


def prove_writing(making: Making[WriteRecipe, PairSplits, FinishedWriter]) -> dict[str, Any]:
    """Evaluate the finished folder on dev and test rows; write the written texts.

    The folder is read from the disk, so the figures are those its user gets.
    """
    job = making.job
    folder = WritingFolder.at(job.folder, device=making.device)
    sides: dict[str, Any] = {"dev": None, "test": None}
    for name, data in (("dev", job.rows.dev), ("test", job.rows.test)):
        if data is None or not len(data):
            continue
        some = evenly(data, job.recipe.dev.reported)
        written = folder.written([row[0] for row in some.rows])
        write_texts(job.folder / f"written.{name}.jsonl", some, written)
        sides[name] = {**folder.evaluated(some, written), "of": len(data)}
    return {
        "data": pairs_section(job.rows, making.finished.notes),
        "losses": _losses(making.finished.writing.usual, making.outcome),
        **sides,
    }


def _losses(usual: Mapping[str, float], outcome: Outcome) -> dict[str, Any]:
    """The dev loss of each part next to that of a model that does not look at the texts."""
    chosen = outcome.evaluation
    losses = {} if chosen is None else chosen.losses
    return {name: {"dev": losses.get(name), "usual": value} for name, value in usual.items()}


def _distinct(texts: Sequence[str]) -> dict[str, float]:
    return {f"distinct_{size}": distinct(texts, size) for size in (1, 2)}


def _interval(table: Floats, name: str) -> dict[str, float]:
    found = bootstrap(partial(_drawn, table, name), len(table), samples=SAMPLES)
    return {"low": found.low, "high": found.high}


def _drawn(table: Floats, name: str, rows: Ints) -> float:
    return WRITTEN.figures(table[np.asarray(rows)], ())[name]


def write_texts(path: Path, data: SentenceData, written: Sequence[str]) -> None:
    """Source, written text and reference of each row, as JSON lines."""
    lines = [
        json.dumps(
            {"line": line, "source": row[0], "written": text, "reference": row[1]},
            ensure_ascii=False,
        )
        for line, row, text in zip(data.lines, data.rows, written, strict=True)
    ]
    write_staged(path, ("\n".join(lines) + "\n").encode("utf-8", "replace"))
