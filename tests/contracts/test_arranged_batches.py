"""What a program arranges reaches every rank, and a run resumes with it, bit for bit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file
from stop_after import StopAfter
from toy_corpus import needed_settings, short_recipe

from bertsmith.corpus.rows import RowsBatch
from bertsmith.corpus.shards import Corpus, open_corpus
from bertsmith.nn.inputs import Inputs
from bertsmith.nn.layout import FULL, Dense, Prefix, Sees, picture, visibility
from bertsmith.objectives.batch import PretrainBatch, Targets
from bertsmith.objectives.masked_lm import MaskedLMObjective
from bertsmith.objectives.program import PretrainModule, ProgramSettings
from bertsmith.objectives.source_target import SourceTargetBatch
from bertsmith.training.execution.execution import Execution
from bertsmith.training.pretrain.pretrain import Job, pretrain
from bertsmith.training.pretrain.recipe import PretrainRecipe
from bertsmith.training.pretrain.workload import PretrainWorkload

ARRANGING = ("gpt", "unilm", "bart", "mass", "wklm")  # recipes whose programs arrange their texts


class Arranged:
    """Source and target, reversed positions, a channel: the last half is written word by word."""

    weights: ClassVar = {"next": 1.0}

    def build(self, builder):
        builder.spec = replace(builder.spec, channels=(("half", 2),))
        return PretrainModule(self, builder.model(["masked_lm"]))

    def prepare(self, rows: RowsBatch, share: float = 0.0) -> PretrainBatch:
        sources = tuple(size // 2 for size in rows.lengths)
        positions = rows.sizes[rows.texts] - 1 - rows.places
        half = (rows.places >= np.array(sources)[rows.texts]).astype(np.int64)
        inputs = Inputs.of(
            rows.ids,
            rows.lengths,
            positions=positions,
            sees=Prefix(sources),
            channels={"half": half},
        )
        at = np.flatnonzero(half[:-1] & (rows.texts[1:] == rows.texts[:-1]))
        of = torch.from_numpy(rows.ids[at + 1].astype(np.int64))
        return PretrainBatch.of(inputs, {"next": Targets(at=torch.from_numpy(at), of=of)})

    def losses(self, module: PretrainModule, batch: PretrainBatch):
        hidden = module.model(batch.inputs, rows=batch.rows).hidden
        loss, score = MaskedLMObjective().loss(module.model, None, hidden, batch.targets["next"])
        return {"next": loss}, {"next": score}


class ArrangedSettings(ProgramSettings):
    kind: Literal["arranged"] = "arranged"

    def make(self, tokenizer):
        return Arranged()


PROGRAMS = ["arranged", *ARRANGING]
EACH = pytest.mark.parametrize("name", PROGRAMS)


def recipe(name: str, steps: int = 6) -> PretrainRecipe:
    if name in ARRANGING:
        more = needed_settings(name)
        return short_recipe(name, "input.max_length=48", "save.every=3", *more, steps=steps)
    base = short_recipe(
        "roberta", "model.variant=bert", "input.max_length=48", "save.every=3", steps=steps
    )
    return type(base)(**{**dict(base), "program": ArrangedSettings()})


def read_of(inputs: Inputs, sees: Sees) -> list[tuple[object, ...]]:
    """Ids, positions, channels and who sees whom of every text."""
    lengths = list(inputs.layout.lengths)
    parts = [inputs.ids, inputs.layout.positions, *inputs.channels.values()]
    split = zip(*(part.split(lengths) for part in parts), strict=True)
    return [
        (*(tuple(part.tolist()) for part in text), *seen(sees.take([number]), len(text[0])))
        for number, text in enumerate(split)
    ]


def seen(sees: Sees, size: int) -> tuple[str, ...]:
    """The visibility of one text as a picture; of a memory, the places that are visible."""
    if isinstance(sees, Dense):
        return (
            "".join("#" if place else "." for place in sees.visible[0, 0].tolist()).rstrip("#"),
        )
    return tuple(picture(visibility(sees, [size])))


def texts(workload: PretrainWorkload, step: int) -> list[tuple[object, ...]]:
    """Everything the model reads of every text of a step."""
    rows = []
    for batch in workload.micro_batches(step, 0.0):
        moved = batch.to("cpu")
        if isinstance(moved, SourceTargetBatch):
            sources = read_of(moved.source, moved.sees)
            targets = read_of(moved.target, FULL)
            rows += [(*one, *other) for one, other in zip(sources, targets, strict=True)]
        else:
            rows += read_of(moved.inputs, moved.inputs.layout.sees)
    return sorted(rows)


@EACH
def test_two_ranks_read_what_one_reads(name, toy_shards: Path) -> None:
    corpus: Corpus = open_corpus(toy_shards)
    whole = texts(PretrainWorkload(recipe(name), corpus), 2)
    halves = [PretrainWorkload(recipe(name), corpus, rank=rank, world=2) for rank in (0, 1)]
    assert sorted(text for half in halves for text in texts(half, 2)) == whole
    assert len(whole) > 2
    if name == "arranged":
        ids, positions, half, *_ = whole[0]
        assert positions == tuple(range(len(ids)))[::-1]
        assert sum(half) == len(ids) - len(ids) // 2


@EACH
def test_a_stopped_run_resumes_to_the_same_weights(name, toy_shards: Path, tmp_path: Path) -> None:
    straight = Job(recipe=recipe(name), corpus=toy_shards, out=tmp_path / "straight")
    assert pretrain(straight).status == "finished"
    cut = Job(recipe=recipe(name), corpus=toy_shards, out=tmp_path / "cut")
    stopped = pretrain(cut, execution=Execution(stop=StopAfter(3)))
    assert stopped.status == "stopped"
    assert 0 < stopped.step < 6
    assert pretrain(cut).status == "finished"
    first, second = (load_file(job.out / "model.safetensors") for job in (straight, cut))
    assert first.keys() == second.keys()
    assert any("half" in tensor for tensor in first) == (name == "arranged")
    assert all(np.array_equal(first[tensor], second[tensor]) for tensor in first)
