"""The page of a trained model (report.html), of the sections that its kind makes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from markupsafe import Markup

from bertsmith.files.atomic_file import write_staged
from bertsmith.report.elements.page import page, paragraph

REPORT = "report.html"


def write_training_page(
    folder: Path, sections: Sequence[Markup], documents: Mapping[str, str] | None = None
) -> Path:
    """Write report.html into the folder of a model, and further documents by name."""
    path = folder / REPORT
    write_staged(path, training_page(sections, title=folder.resolve().name).encode())
    for name, text in (documents or {}).items():
        write_staged(folder / name, text.encode())
    return path


def training_page(sections: Sequence[Markup], *, title: str) -> str:
    """A page with the title of a model's folder."""
    last = paragraph("All numbers of this page are in proof.json.", "dim")
    return page(f"{title}: report", [*sections, last])
