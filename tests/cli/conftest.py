"""A fine-tuned folder for the tests of commands."""

from __future__ import annotations

from pathlib import Path

import pytest
from tiny_finetuning import finetuned_folder


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Says whether a text has a bird or a tree in it."""
    return finetuned_folder(tmp_path_factory.mktemp("finetuned") / "tiny")
