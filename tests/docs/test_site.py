"""The site is complete without being built: every public name, setting, page and figure."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from xml.etree import ElementTree

import pytest
from site_scripts import script

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
LONGEST_LINE = 130


def test_the_settings_page_names_every_setting() -> None:
    from bertsmith.sentences.train.recipe import SentenceRecipe
    from bertsmith.training.kinds.labeled.recipe import FinetuneRecipe
    from bertsmith.training.pretrain.recipe import PretrainRecipe

    page = script("settings_page").settings_page()
    for recipe in (PretrainRecipe, FinetuneRecipe, SentenceRecipe):
        for section in set(recipe.model_fields) - {"about"}:
            assert f"### `{section}`" in page
    assert "| `optimizer.weight_decay` | float | `0.01` |" in page
    assert "largest norm of all gradients" in page, "comments of fields are shown"


def test_the_options_page_names_every_option_of_every_command() -> None:
    from bertsmith.cli.command_table import COMMANDS, command_of

    page = script("options_page").options_page()
    headings = [one.split() for one in re.findall(r"^### (.+)$", page, re.MULTILINE)]
    assert {command_of(words)[0] for words in headings} == set(COMMANDS)
    assert "| ·`--first` | text |  | Token that every answer begins with. |" in page
    assert (
        "| `--vocab-size` | number | required | Vocabulary size, special tokens included. |" in page
    )


def test_options_stay_whole_in_inline_code_only() -> None:
    def shown(html: str) -> str:
        return script("pages").on_page_content(html, page=None, config=None, files=None)

    option = '<span class="option">--top-k</span>'
    assert shown("<code>pairs --top-k 5 x-y</code>") == f"<code>pairs {option} 5 x-y</code>"
    block = "<pre><span></span><code>bertsmith --help\n</code></pre>"
    assert shown(block) == block
    assert shown("<p>--help</p>") == "<p>--help</p>"


CHARTS = tomllib.loads((DOCS / "benchmarks" / "charts.toml").read_text(encoding="utf-8"))


def pages_with(marker: str) -> set[str]:
    """The benchmark pages that have a line."""
    pages = (DOCS / "benchmarks").glob("*.md")
    return {page.name for page in pages if marker in page.read_text("utf-8").splitlines()}


@pytest.mark.parametrize("name", sorted(CHARTS))
def test_a_chart_shows_figures_of_its_page(name) -> None:
    """Each figure and ratio of a bar is on the page, next to the command and the day."""
    chart = CHARTS[name]
    assert chart["page"] in pages_with(f"<!-- chart: {name} -->")
    text = " ".join((DOCS / "benchmarks" / chart["page"]).read_text(encoding="utf-8").split())
    printed = {
        float(number.replace(",", ""))
        for number in re.findall(r"(?<![\d.])(?:\d[\d,]*\d|\d)?(?:\.\d+)?(?=\D)", text)
        if number
    }
    for bar in chart["bars"]:
        figures = {bar[key] for key in ("value", "against", "ratio") if key in bar}
        assert figures <= printed, bar["name"]
    assert f"`{chart['command']}`" in text
    (day,) = re.findall(r"\d{4}-\d\d-\d\d", chart["measured"])
    assert day in text


def test_a_ratio_is_that_of_its_figures() -> None:
    module = script("chart")
    bars = [(chart, bar) for chart in CHARTS.values() for bar in chart["bars"]]
    both = [(chart, bar) for chart, bar in bars if {"ratio", "value"} <= set(bar)]
    assert len(both) > 20
    for chart, bar in both:
        computed = module.ratio(chart, {key: bar[key] for key in bar if key != "ratio"})
        assert computed == pytest.approx(bar["ratio"], abs=0.06), bar
    less = {"better": "less"}
    assert module.ratio(less, {"value": 5.0, "against": 20.0}) == 4
    assert module.ratio(less, {"value": 0.25}) == 4
    assert module.ratio({"better": "more"}, {"value": 5.0, "against": 20.0}) == 0.25


def test_every_chart_of_a_page_exists_and_is_drawn_to_scale() -> None:
    module = script("chart")
    for page in (DOCS / "benchmarks").glob("*.md"):
        asked = re.findall(r"<!-- chart: (.*) -->", page.read_text(encoding="utf-8"))
        assert set(asked) <= set(CHARTS), page.name
    for name, chart in CHARTS.items():
        html = module.figure(name)
        assert "\n\n" not in html, "Markdown would end the block there"
        root = ElementTree.fromstring(html)
        rects = [one.attrib for one in root.iter("rect") if one.get("class") != "track"]
        ratios = [module.ratio(chart, bar) for bar in chart["bars"]]
        widths = [float(one["width"].removesuffix("%")) for one in rects]
        assert widths == pytest.approx([100 * r / max(1, *ratios) for r in ratios], abs=0.01)
        ours = [r for r, bar in zip(ratios, chart["bars"], strict=True) if "other" not in bar]
        kinds = [one["class"] for one in rects if one["class"] != "peer"]
        assert kinds == ["slower" if r < 1 else "ours" for r in ours]


def test_the_chart_of_the_readme_is_the_one_of_the_figures() -> None:
    chart = script("chart")
    drawn = chart.TARGET.read_text(encoding="utf-8")
    assert drawn == chart.picture(), "run python docs/site/chart.py"


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
    assert "  font: false" in settings
    assert "  - offline\n" in settings, "the search works from the file system"
    assert not re.findall(r"https?:", settings)
    (worker,) = re.findall(r"polyfills:\n    - (\S+)", settings)
    assert (DOCS / worker).is_file()
    for page in [ROOT / "README.md", *DOCS.rglob("*.md"), *DOCS.rglob("*.svg")]:
        text = page.read_text(encoding="utf-8")
        loads = re.findall(r"!\[[^\]]*\]\(https?:|(?:src|xlink:href)=\"https?:|<script", text)
        assert not loads, page


@pytest.mark.parametrize(
    ("html", "is_outside"),
    [
        ('<script src="https://unpkg.com/x"></script>', True),
        ("<img loading=lazy src='//host/x.png'>", True),
        ('<link rel="stylesheet" href="https://fonts.example/css">', True),
        ('<link href="https://fonts.example" rel="preconnect">', True),
        ('<style>@import "https://host/x.css"</style>', True),
        ("p{background:url(https://host/x.png)}", True),
        ('<a href="https://keepachangelog.com">form</a>', False),
        ('<link rel="prev" href="predict.html">', False),
        ('<link rel="canonical" href="https://host/page.html">', False),
        ('<script src="../assets/iframe-worker.js"></script>', False),
        ("<pre>curl http://localhost:8080/embed</pre>", False),
    ],
)
def test_the_build_refuses_what_is_loaded_from_outside(html, is_outside) -> None:
    assert bool(script("pages").OUTSIDE.search(html)) is is_outside


def test_prose_has_short_lines() -> None:
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]:
        for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), start=1):
            where = f"{page.relative_to(ROOT)}:{number}"
            assert line.startswith("|") or len(line) <= LONGEST_LINE, where
