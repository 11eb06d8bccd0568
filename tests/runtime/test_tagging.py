"""A tag model of the user as the source of a channel, in training and in prediction."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tiny_finetuning import RECIPE, SHORT, rows, tiny_job

from bertsmith.errors import ConfigError, FolderError
from bertsmith.labeled.example import Tagged
from bertsmith.runtime.load_predictor import load_predictor
from bertsmith.runtime.tagging import folder_tagger
from bertsmith.training.kinds.labeled.learner import finetune
from bertsmith.training.kinds.labeled.recipe import ChannelSettings

pytestmark = pytest.mark.usefixtures("edited_folders")


@pytest.fixture(scope="module")
def tagger(source: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("tagger") / "tagger"
    finetune(tiny_job(source, out, "tag", recipe=RECIPE))
    return out


def test_a_tag_model_tags_the_rows_of_training_and_of_prediction(
    source: str, tagger: Path, tmp_path: Path
) -> None:
    own = tmp_path / "tagger"
    shutil.copytree(tagger, own)
    tag, stored = folder_tagger(str(own))
    held_out = rows(12, "tag", seed=9)
    for example, found in zip(held_out, tag(held_out), strict=True):
        assert isinstance(example.target, Tagged)
        wanted = [
            unit
            for unit, name in zip(example.target.units, example.target.tags, strict=True)
            if name != "O"
        ]
        assert [(start, end) for part in found for start, end, _ in part] == wanted
    assert stored["folder"] == str(own)
    channel = ChannelSettings(column=str(own))
    recipe = SHORT.model_copy(update={"channel": channel})
    job = tiny_job(source, tmp_path / "out", recipe=recipe)
    done = finetune(job)
    predictor = load_predictor(tmp_path / "out")
    assert predictor.meta_columns == (), "no column is needed: the model tags"
    found = predictor.predict([row.texts[0] for row in job.rows.dev])
    assert [one.value for one in found] == [one.value for one in done.finished.predictions]
    weights = own / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-4] + b"\0\0\0\1")
    with pytest.raises(FolderError, match="is not the one it was trained with"):
        load_predictor(tmp_path / "out")
    shutil.rmtree(own)
    with pytest.raises(FolderError, match="which is not there; put that folder back"):
        load_predictor(tmp_path / "out")


def test_a_folder_that_does_not_tag_is_refused_by_name(source: str, tmp_path: Path) -> None:
    finetune(tiny_job(source, tmp_path / "classes", recipe=SHORT))
    with pytest.raises(ConfigError, match="was trained for classify, and a channel needs a model"):
        folder_tagger(str(tmp_path / "classes"))
