"""A tag model of the user as the source of a channel: texts in, tagged stretches out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from bertsmith.errors import ConfigError, FolderError
from bertsmith.folders.keys import model_key
from bertsmith.folders.kinds import kind_if_any
from bertsmith.labeled.example import Example
from bertsmith.runtime.load_predictor import load_predictor
from bertsmith.tasks.enrichment.tags import Structures, Tagger
from bertsmith.tasks.prediction import PredictedSpan


def folder_tagger(name: str, *, device: str = "cpu") -> tuple[Tagger, dict[str, str]]:
    """The tagger of a fine-tuned folder, and its place and key as a model folder stores them."""
    predictor = load_predictor(name, device=device)
    if predictor.task.reads != "rows" or not predictor.task.labels:
        raise ConfigError(
            f"--channel {name}: the folder was trained for {predictor.task.name}, and a channel "
            "needs a model that tags; give the folder of a tag model, or a column of tags"
        )
    known: dict[str, Structures] = {}

    def tag(examples: Sequence[Example]) -> list[Structures]:
        new = dict.fromkeys(one.texts[0] for one in examples if one.texts[0] not in known)
        for text, prediction in zip(new, predictor.predict(list(new)), strict=True):
            spans = prediction.value if isinstance(prediction.value, tuple) else ()
            known[text] = [
                [(s.start, s.end, s.label) for s in spans if isinstance(s, PredictedSpan)]
            ]
        return [known[one.texts[0]] for one in examples]

    return tag, {"folder": str(Path(name).resolve()), "key": model_key(name)}


def stored_tagger(model: Mapping[str, str], place: str, *, device: str = "cpu") -> Tagger:
    """The tagger that a model was trained with; another one is refused."""
    name = str(model.get("folder"))
    if kind_if_any(Path(name)) is None:
        raise FolderError(
            f"{place}: its channel is tagged by the model in {name}, which is not there; put that "
            "folder back, or train anew with --channel"
        )
    tagger, found = folder_tagger(name, device=device)
    if found["key"] != model.get("key"):
        raise FolderError(
            f"{place}: the model in {name}, which tags its channel, is not the one it was trained "
            "with; put that one back, or train anew with --channel"
        )
    return tagger
