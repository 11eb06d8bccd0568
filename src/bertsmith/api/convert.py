"""Folders for other libraries: what they cannot read is refused by name."""

from __future__ import annotations

from pathlib import Path

from bertsmith.errors import ConfigError
from bertsmith.folders.extras import read_task
from bertsmith.folders.read import read_folder
from bertsmith.models.config.own import OWN_TYPE


def check_transformers(source: str | Path) -> None:
    """Refuse a folder whose numbers transformers would not reproduce.

    Folders of other models are written in the form that transformers reads, as `convert` does.
    """
    folder = read_folder(source)
    kind = folder.reading.model_type
    if kind in (OWN_TYPE, "nezha"):
        raise ConfigError(f"{folder.path}: transformers has no model type {kind!r}")
    section = read_task(folder.parts.transformer)
    for key in ("knowledge", "channel"):
        if section is not None and key in section:
            raise ConfigError(
                f"{folder.path}: the model reads a {key} besides its text, which transformers "
                f"cannot; train without --{key} for a folder that it reads"
            )
    if section is None or section.get("head") is None or folder.reading.heads:
        return
    from bertsmith.runtime.load_predictor import load_predictor
    from bertsmith.tasks.model.published import head_gaps

    predictor = load_predictor(source)
    gaps = ", ".join(head_gaps(predictor.model, predictor.lengths))
    raise ConfigError(
        f"{folder.path}: transformers has no class for this head ({gaps}); "
        "`bertsmith finetune --set vector.pooling=published` trains one that it has, and AutoModel "
        "reads this folder as an encoder"
    )
