"""A model saved again with other sentence settings: the encoder stays, what follows it changes."""

from __future__ import annotations

from pathlib import Path

from bertsmith.files.atomic_folder import check_target
from bertsmith.folders.generation import all_extras
from bertsmith.folders.kinds import STATIC, kind_at
from bertsmith.folders.read import load_model
from bertsmith.folders.static import load_static, save_static
from bertsmith.folders.write import save_model
from bertsmith.models.sentence_spec import SentenceSettings


def save_with(
    model: str | Path, settings: SentenceSettings, out: Path, *, overwrite: bool = False
) -> None:
    """Write the folder of a model, or of static vectors, with these settings as a new folder."""
    kind, _ = kind_at(model)
    if kind is STATIC:
        static = load_static(model)
        save_static(static.table, static.tokenizer, out, settings=settings, overwrite=overwrite)
        return
    loaded = load_model(model)
    save_model(
        loaded.model,
        loaded.tokenizer,
        out,
        sentence=settings,
        labels=loaded.folder.reading.labels,
        model_type=loaded.folder.reading.model_type,
        extras=all_extras(loaded.folder),
        overwrite=overwrite,
    )


def check_out(out: Path, *, overwrite: bool) -> None:
    """Refuse a folder that cannot be written, before any work is done."""
    check_target(out.absolute(), overwrite=overwrite)
