"""Planted tasks: a graph, or a channel of tags, that alone knows the label of unseen rows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from planted_knowledge import (
    RECIPE,
    channel_rows,
    graph_rows,
    planted_folder,
    planted_job,
    planted_names,
    write_graph,
)

from bertsmith.runtime.load_predictor import load_predictor
from bertsmith.training.kinds.labeled.learner import FinetunedTask, finetune
from bertsmith.training.kinds.labeled.recipe import ChannelSettings, KnowledgeSettings
from bertsmith.training.learner import Trained


def accuracy(result: Trained[FinetunedTask]) -> float:
    assert result.dev_figures is not None
    return result.dev_figures["accuracy"]


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> str:
    return planted_folder(tmp_path_factory.mktemp("planted") / "model")


def test_a_graph_that_alone_knows_the_label_is_read_for_unseen_names(
    source: str, tmp_path: Path
) -> None:
    names = planted_names()
    rows = graph_rows(names)
    graph = KnowledgeSettings(file=write_graph(tmp_path / "facts.tsv", names))
    job = planted_job(source, tmp_path / "with", rows, 400)
    job = replace(job, recipe=RECIPE.model_copy(update={"knowledge": graph}))
    with_graph = finetune(job)
    assert accuracy(with_graph) >= 0.95
    assert accuracy(finetune(planted_job(source, None, rows, 400))) <= 0.60
    # What is on disk needs neither the file of triples nor anything else.
    (tmp_path / "facts.tsv").unlink()
    stored = load_predictor(tmp_path / "with").predict(list(job.rows.dev))
    assert [one.value for one in stored] == [one.value for one in with_graph.finished.predictions]


def test_a_channel_that_alone_knows_the_label_is_read(source: str, tmp_path: Path) -> None:
    rows = channel_rows(1_200, seed=1)
    job = planted_job(source, tmp_path / "with", rows, 300)
    channel = ChannelSettings(column="roles")
    job = replace(job, recipe=RECIPE.model_copy(update={"channel": channel}))
    with_channel = finetune(job)
    assert accuracy(with_channel) >= 0.95
    assert accuracy(finetune(planted_job(source, None, rows, 300))) <= 0.60
    stored = load_predictor(tmp_path / "with").predict(list(job.rows.dev))
    assert [one.value for one in stored] == [one.value for one in with_channel.finished.predictions]
