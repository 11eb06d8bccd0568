"""The site is complete without being built: every public name, setting, page and figure."""

from __future__ import annotations

import importlib.util
import inspect
import re
import sys
from pathlib import Path
from types import ModuleType

import pydantic
import pytest

import bertsmith

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
LONGEST_LINE = 130


def script(name: str) -> ModuleType:
    """A script of docs/site as a module."""
    path = DOCS / "site" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"docs_site_{name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_every_public_name_is_in_the_reference() -> None:
    page = (DOCS / "reference-python.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"^::: bertsmith\.(\w+)$", page, re.MULTILINE))
    assert listed == set(bertsmith.__all__) - {"__version__"}


@pytest.mark.parametrize("name", sorted(set(bertsmith.__all__) - {"__version__"}))
def test_every_public_name_is_documented(name) -> None:
    value = getattr(bertsmith, name)
    assert inspect.getdoc(value), name
    if not inspect.isclass(value) or issubclass(value, Exception):
        return
    inherited = set(dir(pydantic.BaseModel)) if issubclass(value, pydantic.BaseModel) else set()
    for member, one in inspect.getmembers(value):
        if member in inherited:
            continue
        own = inspect.isfunction(one) or inspect.ismethod(one) or isinstance(one, property)
        if own and not member.startswith("_"):
            assert inspect.getdoc(one), f"{name}.{member}"


def test_the_settings_page_names_every_setting() -> None:
    from bertsmith.sentences.train.recipe import SentenceRecipe
    from bertsmith.training.finetune.recipe import FinetuneRecipe
    from bertsmith.training.pretrain.recipe import PretrainRecipe

    page = script("settings_page").settings_page()
    for recipe in (PretrainRecipe, FinetuneRecipe, SentenceRecipe):
        for section in set(recipe.model_fields) - {"about"}:
            assert f"### `{section}`" in page
    assert "| `optimizer.weight_decay` | float | `0.01` |" in page
    assert "largest norm of all gradients" in page, "comments of fields are shown"


def test_the_chart_shows_the_figures_of_the_benchmark_page() -> None:
    chart = script("chart")
    assert len(chart.rates()) == 7
    drawn = chart.TARGET.read_text(encoding="utf-8")
    assert drawn == chart.chart(), "run python docs/site/chart.py"


def test_every_page_is_in_the_navigation() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    for page in sorted(DOCS.rglob("*.md")):
        assert f": {page.relative_to(DOCS).as_posix()}\n" in navigation, page


def test_ci_runs_the_whole_gate_and_no_test_twice() -> None:
    assert (ROOT / ".ci" / "run").read_text(encoding="utf-8").rstrip().endswith("exec make check")
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    gate = makefile.partition("\ncheck: ")[2].partition("\n\n")[0]
    for tool in ("ruff format --check .", "ruff check .", "mypy", "tests/test_architecture.py"):
        assert f"/{tool}" in gate or tool in gate
    assert "pytest $(PYTEST_ARGS) --ignore=tests/test_architecture.py" in gate


def test_pages_load_nothing_from_other_hosts() -> None:
    settings = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert "highlightjs: false" in settings
    for page in [ROOT / "README.md", *DOCS.rglob("*.md"), *DOCS.rglob("*.svg")]:
        text = page.read_text(encoding="utf-8")
        loads = re.findall(r"!\[[^\]]*\]\(https?:|(?:src|xlink:href)=\"https?:|<script", text)
        assert not loads, page


def test_prose_has_short_lines() -> None:
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]:
        for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), start=1):
            where = f"{page.relative_to(ROOT)}:{number}"
            assert line.startswith("|") or len(line) <= LONGEST_LINE, where
