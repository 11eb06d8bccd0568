"""A small masked model for the tests of filling and scoring."""

from __future__ import annotations

from pathlib import Path

import pytest
from masked_models import masked_folder

from bertsmith.runtime.loading import load
from bertsmith.runtime.mask_filling import MaskedModel


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return masked_folder(tmp_path_factory.mktemp("masked") / "model")


@pytest.fixture(scope="module")
def model(folder: Path) -> MaskedModel:
    return load(folder, precision="fp32").masked
