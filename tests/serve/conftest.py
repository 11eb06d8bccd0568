"""Models of every task, made once for all tests of the service."""

from __future__ import annotations

import pytest
from page_models import TaskFolders, page_index, page_models


@pytest.fixture(scope="session")
def task_folders(tmp_path_factory: pytest.TempPathFactory) -> TaskFolders:
    place = tmp_path_factory.mktemp("tasks")
    models = page_models(place)
    return TaskFolders(models, page_index(place, models["masked"]))
