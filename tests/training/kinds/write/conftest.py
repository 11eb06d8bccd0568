"""One thread: equal bits need equal threads."""

from __future__ import annotations

import pytest
from one_thread import one_thread  # noqa: F401 - a fixture of all tests here
from tiny_writing import tiny_writing_folder


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A tiny masked LM, untrained."""
    return tiny_writing_folder(tmp_path_factory.mktemp("models") / "tiny")
