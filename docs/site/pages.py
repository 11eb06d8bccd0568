"""Pages of the site that are made at build time: the README as its first page, and the settings."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).parent))
from settings_page import settings_page

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files

ROOT = Path(__file__).parents[2]
TOP = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "CONTRIBUTING.md",
    "CHANGELOG.md": "CHANGELOG.md",
}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages of the repository's root, the license and the settings."""
    from mkdocs.structure.files import File

    for source, page in TOP.items():
        text = (ROOT / source).read_text(encoding="utf-8")
        files.append(File.generated(config, page, content=from_root(text)))
    license_text = (ROOT / "LICENSE").read_text(encoding="utf-8")
    files.append(File.generated(config, "LICENSE.txt", content=license_text))
    files.append(File.generated(config, "settings.md", content=settings_page()))
    return files


def from_root(text: str) -> str:
    """A page of the repository's root with its links seen from docs/."""
    return (
        text.replace("](docs/", "](")
        .replace("](README.md", "](index.md")
        .replace("](LICENSE)", "](LICENSE.txt)")
    )
