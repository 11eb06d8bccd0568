"""A road as a study: every model trained and tested once, its time planned, its result stored."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markupsafe import Markup

from bertsmith.classic.word_vectors.word_vectors import WordVectors
from bertsmith.errors import ConfigError, unknown
from bertsmith.files.atomic_folder import make_folder
from bertsmith.files.digest import json_digest
from bertsmith.files.strict_json import write_json
from bertsmith.studies.road.kinds import ROAD_KINDS, RoadKind, RoadTraining
from bertsmith.studies.road.material import RoadMaterial, prepare_material
from bertsmith.studies.road.measures import (
    RoadTests,
    WordTests,
    context_sentences,
    find_sense_tests,
    measured,
    vector_sets,
)
from bertsmith.studies.road.probe import read_probe
from bertsmith.studies.road.request import RoadRequest
from bertsmith.studies.road.table import RoadRow, RoadTable, complete, road_sections
from bertsmith.studies.study import Study, StudyPlan
from bertsmith.training.checkpoints.checkpoint import CHECKPOINTS
from bertsmith.training.execution.execution import Execution, RunSettings
from bertsmith.training.loop.progress import Watcher
from bertsmith.training.loop.run import Outcome
from bertsmith.training.repeat.trials import Trial, TrialResult, Trials

PLAN, MODELS, VECTORS, BAG = "plan.json", "models", "vectors", "bag-of-words.json"
RUN = RunSettings(precision="fp32")  # the same number format for all models
TESTING = 0.25  # of a model's time is for its tests
SPARE = 0.03  # of all time, for the table and the page
LEAST = 1.0  # second of training
WAYS = ("contexts", "inputs")
OF_TRAINING = ("log.jsonl", "result.json", "recipe.toml", "lock")  # files of a folder


LATE = (
    "preparation took more than half of the time, so there is little left to train: give a longer "
    "budget, or less text"
)


class RoadClock:
    """How long each model may take; the plan is on disk, so that a resumed road keeps to it."""

    def __init__(self, path: Path, budget: float | None, preparation: float) -> None:
        self._path, self.budget = path, budget
        if path.exists():
            self._plan: dict[str, Any] = json.loads(path.read_bytes())
            return
        left = 0.0 if budget is None else max(0.0, budget * (1 - SPARE) - preparation)
        total = sum(kind.share for kind in ROAD_KINDS.values())
        planned = {name: left * kind.share / total for name, kind in ROAD_KINDS.items()}
        self._plan = {"preparation": preparation, "planned": planned, "used": {}, "training": {}}
        self._write()

    def lines(self) -> list[str]:
        """The plan for people."""
        if self.budget is None:
            return []
        planned: dict[str, float] = self._plan["planned"]
        late = self._plan["preparation"] > self.budget / 2
        parts = [f"{ROAD_KINDS[name].title} {time:.0f} s" for name, time in planned.items()]
        return [
            f"preparation took {self._plan['preparation']:.0f} s of {self.budget:.0f} s; every "
            f"model has, its tests included: {', '.join(parts)}",
            *([LATE] if late else []),
        ]

    def record(self) -> dict[str, Any]:
        """The plan as JSON: seconds of the preparation, and of each model."""
        return {"budget": self.budget, **self._plan}

    def training_seconds(self, name: str) -> float | None:
        """How long a model is trained: as planned, or less where the road is late."""
        if self.budget is None:
            return None
        if name not in self._plan["training"]:
            planned, used = self._plan["planned"], self._plan["used"]
            rest = sum(time for one, time in planned.items() if one not in used)
            left = self.budget * (1 - SPARE) - self._plan["preparation"] - sum(used.values())
            share = min(1.0, max(0.0, left) / max(rest, 1e-9))
            seconds = max(LEAST, planned[name] * share * (1 - TESTING))
            self._plan["training"][name] = round(seconds, 1)
            self._write()
        return float(self._plan["training"][name])

    def trained(self, name: str, seconds: float) -> float:
        """The seconds of a training without a loop, remembered from its first end."""
        stored = self._plan.setdefault("trained", {}).setdefault(name, seconds)
        self._write()
        return float(stored)

    def ended(self, name: str, seconds: float) -> None:
        """A model was trained and tested."""
        self._plan["used"][name] = seconds
        self._write()

    def _write(self) -> None:
        write_json(self._path, self._plan)


@dataclass(frozen=True, kw_only=True)
class RoadStudy(Study[RoadTable]):
    """Material, tests and time of a road; a model that fails does not end the others."""

    material: RoadMaterial
    tests: RoadTests
    words: WordTests
    clock: RoadClock
    bag_of_words: dict[str, Any] | None
    folder: Path
    title: str
    name: str = "road"
    keep_going: bool = True

    def plan(self, execution: Execution) -> StudyPlan:
        """One run per model, and the time that each has."""
        trials = [
            Trial(
                name=name,
                key=json_digest([self.material.request.record(), name]),
                run=self._run(name, kind, execution),
                cost=kind.share,
            )
            for name, kind in ROAD_KINDS.items()
        ]
        return StudyPlan(
            trials=trials,
            price=[*self.facts(), *self.clock.lines()],
            record={"facts": self.facts(), **self.clock.record()},
        )

    def _run(
        self, name: str, kind: RoadKind, execution: Execution
    ) -> Callable[[Watcher | None], TrialResult | Outcome]:
        def run(watch: Watcher | None) -> TrialResult | Outcome:
            began = time.monotonic()
            out = self.folder / MODELS / name
            job = RoadTraining(
                material=self.material,
                out=out,
                seconds=self.clock.training_seconds(name),
                steps=self.material.request.steps,
                settings=settings_of(name, self.material.request.settings),
                execution=execution,
                watch=watch,
            )
            outcome, steps = kind.train(job), None
            if isinstance(outcome, Outcome):
                steps = outcome.step
                if outcome.status != "finished":
                    return outcome
                seconds = outcome.seconds
            else:
                seconds = self.clock.trained(name, outcome)
            model = kind.open(out, self.material)
            cells = measured(name, out, model, self.material, self.tests)
            make_folder(self.folder / VECTORS)
            for way, vectors in vector_sets(model, self.tests).items():
                vectors.write(self.folder / VECTORS / f"{name}-{way}.bin")
            self.clock.ended(name, time.monotonic() - began)
            return TrialResult(
                name=name,
                figures={},
                seconds=seconds,
                more={
                    "cells": cells,
                    "steps": steps,
                    "parameters": model.parameters,
                    "bytes": _size(out),
                },
            )

        return run

    def result(self, done: Trials) -> RoadTable:
        """The table of all models; one that failed has dashes."""
        found = {row.name: row for row in done.rows}
        sets = {name: self._vectors(name) for name in found}
        compared, coverage = self.words.compare({n: some for n, some in sets.items() if some})
        rows = []
        for name, kind in ROAD_KINDS.items():
            result, failed = found.get(name), done.failed.get(name)
            cells = {} if result is None else {**result.more["cells"], **compared.get(name, {})}
            rows.append(
                RoadRow(
                    name=name,
                    title=kind.title,
                    about=kind.about,
                    cells=complete(cells, kind.lacks, failed=failed),
                    seconds=None if result is None else result.seconds,
                    steps=None if result is None else result.more["steps"],
                    parameters=None if result is None else result.more["parameters"],
                    size=None if result is None else result.more["bytes"],
                )
            )
        return RoadTable(
            rows=tuple(rows),
            facts=(*self.facts(), *coverage),
            bag_of_words=self.bag_of_words,
        )

    def sections(self, result: RoadTable) -> list[Markup]:
        """One picture, and the table in parts."""
        return road_sections(result)

    def _vectors(self, name: str) -> dict[str, WordVectors]:
        place = self.folder / VECTORS
        paths = {way: place / f"{name}-{way}.bin" for way in WAYS}
        return {way: WordVectors.read(path) for way, path in paths.items() if path.exists()}

    def facts(self) -> list[str]:
        """What the road is trained and tested on, as sentences."""
        material, counts = self.material, self.material.counts
        scored = material.scored
        pieces = sum(map(len, scored.pieces))
        unknown_pieces = sum(int((line == 0).sum()) for line in scored.pieces)
        facts = [
            f"{counts.train:,} documents to train on, {counts.validation:,} for early stopping, "
            f"{counts.held_out:,} held out; a tokenizer of {material.tokenizer.vocab_size:,} "
            f"pieces, and {material.words.vocab_size - 1:,} words for models of words.",
            f"Perplexities are over {len(scored.texts):,} held-out lines: {pieces:,} pieces "
            f"({unknown_pieces:,} unknown), {scored.word_count:,} words, "
            f"{scored.characters:,} characters.",
        ]
        probe = self.tests.probe
        if probe is not None and self.bag_of_words is not None:
            facts.append(
                f"Probe: {len(probe.train):,} rows to train and {len(probe.test):,} to test, the "
                f"first {material.request.sizes.text_words} words of each ({probe.shortened:,} "
                f"texts are longer); a bag of words reaches {self.bag_of_words['value']:.3f} "
                f"({self.bag_of_words['low']:.3f}-{self.bag_of_words['high']:.3f})."
            )
        if self.tests.senses:
            words = ", ".join(f"{one.word} ({len(one.occurrences)})" for one in self.tests.senses)
            facts.append(f"Sense test, with the number of occurrences: {words}.")
        if counts.skipped_lines:
            facts.append(f"{counts.skipped_lines:,} unreadable lines were skipped.")
        return facts


def settings_of(name: str, settings: Sequence[str]) -> tuple[str, ...]:
    """Those of the changes that are for a kind, without its name."""
    return tuple(one.partition(".")[2] for one in settings if one.partition(".")[0].strip() == name)


def check_settings(settings: Sequence[str]) -> None:
    """Refuse a change that is for no kind."""
    for one in settings:
        name, dot, rest = one.partition(".")
        if not dot or "=" not in rest:
            raise ConfigError(f"{one!r} is no setting of a model; write KIND.key=value")
        if name.strip() not in ROAD_KINDS:
            raise unknown("model of a road", name.strip(), ROAD_KINDS)


def read_road(
    request: RoadRequest, *, notice: Callable[[str], None] = lambda line: None
) -> RoadStudy:
    """Check a request, then split, tokenize and prepare its tests; no model is trained."""
    began = time.monotonic()
    request.check()
    check_settings(request.settings)
    words = WordTests.read(request.similarity, request.analogies)
    material = prepare_material(request, notice)
    sentences = list(material.held_out())
    labels = None if request.labels is None else read_probe(request.labels, material)
    tests = RoadTests(
        senses=find_sense_tests(sentences),
        words=words.words(),
        sentences=context_sentences(sentences, words.words(), request.sizes.sentences),
        probe=labels,
    )
    bag, path = None, material.folder / BAG
    if labels is not None:
        if not path.exists():
            write_json(path, labels.bag_of_words())
        bag = json.loads(path.read_bytes())
    clock = RoadClock(material.folder / PLAN, request.budget, time.monotonic() - began)
    names = ", ".join(path.name for path in request.files)
    return RoadStudy(
        material=material,
        tests=tests,
        words=words,
        clock=clock,
        bag_of_words=bag,
        folder=material.folder,
        title=f"The road to BERT: {names}",
    )


def _size(folder: Path) -> int:
    """Bytes of a model, without what only training needs."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    inside = [path for path in files if CHECKPOINTS not in path.relative_to(folder).parts]
    return sum(path.stat().st_size for path in inside if path.name not in OF_TRAINING)
