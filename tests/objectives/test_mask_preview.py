"""`bertsmith mask preview`, as a user types it, and the page it writes."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from masking_cases import ENTITIES, tokenizer
from typer.testing import CliRunner

from bertsmith.cli.commands.mask import app
from bertsmith.errors import BertsmithError, ConfigError, InputFileError
from bertsmith.objectives.masking.masking import Masking, MaskSettings
from bertsmith.objectives.masking.preview import preview


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> str:
    folder = tmp_path_factory.mktemp("vocabulary")
    tokenizer().save(folder)
    return str(folder)


def run(*arguments: str | Path) -> str:
    found = CliRunner().invoke(app, ["preview", *map(str, arguments)])
    if found.exception is not None and not isinstance(found.exception, SystemExit):
        raise found.exception
    assert found.exit_code == 0, found.output
    return found.stdout


def test_units_stand_in_angles_and_rates_beside_each_other(model, tmp_path) -> None:
    file = tmp_path / "texts.txt"
    file.write_text("cats play the playable words north and south\n" * 300, encoding="utf-8")
    out = run(model, file, "--grouping", "whole_word", "--rate", "0.3", "--count", "3")
    lines = out.splitlines()
    assert all(line.startswith("[CLS] ") and line.endswith(" [SEP]") for line in lines[:3])
    assert len({*lines[:3]}) > 1  # each text has its own mask
    assert "‹" in "".join(lines[:3])
    table = {row[0]: row[1:] for row in (line.split("\t") for line in lines[4:]) if len(row) == 3}
    asked, found = (float(cell.rstrip("%")) for cell in table["tokens masked"])
    assert asked == 30.0
    assert found == pytest.approx(30.0, abs=2)
    assert float(table["of them: [MASK]"][1].rstrip("%")) == pytest.approx(80, abs=5)
    assert "300 texts" in out


def test_a_text_itself_can_be_given_and_a_seed_changes_the_choice(model) -> None:
    text = "cats play words north south new york piece"
    first, again, other = (run(model, text, "--seed", seed) for seed in ("1", "1", "2"))
    assert first == again != other


def test_chinese_words_of_a_segmenter_are_hidden_whole(model) -> None:
    pytest.importorskip("jieba")
    text = "我爱北京天安门大学生活很美好" * 3
    options = ("--grouping", "whole_word", "--replacement", "all_mask", "--segmenter", "jieba")
    out = run(model, text, *options, "--rate", "0.3")
    units = re.findall(r"‹(.*?)›", out)
    assert any(unit.count("→[MASK]") > 1 for unit in units)
    single = run(model, text, "--grouping", "whole_word", "--replacement", "all_mask")
    assert all(unit.count("→[MASK]") == 1 for unit in re.findall(r"‹(.*?)›", single))


def test_lists_of_entities_and_synonyms_are_used(model, tmp_path) -> None:
    entities = tmp_path / "entities.txt"
    entities.write_text("\n".join(ENTITIES["english"]), encoding="utf-8")
    out = run(
        model, "new york " * 20, "--grouping", "entity", "--phrases", entities, "--rate", ".3"
    )
    assert all(" " in unit for unit in re.findall(r"‹(.*?)›", out))
    synonyms = tmp_path / "synonyms.txt"
    synonyms.write_text("new york\n", encoding="utf-8")
    out = run(model, "new " * 40, "--replacement", "similar", "--synonyms", synonyms)
    assert "new→york" in out
    assert "similar word\t80.00%" in out


class Page(HTMLParser):
    """Collects tags, and text outside of the style."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""

    def handle_starttag(self, tag, attrs) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data) -> None:
        self.text += data


def test_the_page_is_closed_to_scripts_and_shows_what_hides(model, tmp_path) -> None:
    out = tmp_path / "mask.html"
    hostile = '<script>alert(1)</script> <img src=x onerror=alert(1)> \u202ecats\u200b & "words"'
    extra = tmp_path / "vocabulary"
    extra.mkdir()
    made = tokenizer().add_tokens(["<script>", "<img", "onerror=alert(1)>", "</script>"])
    made.save(extra)
    run(extra, hostile, "--rate", "0.5", "--html", out)
    page = out.read_text(encoding="utf-8")
    parsed = Page()
    parsed.feed(page)
    tags = [tag for tag, _ in parsed.tags]
    assert "script" not in tags
    assert "img" not in tags
    assert not any(name.startswith("on") for _, attrs in parsed.tags for name in attrs)
    assert not any({"src", "href"} & attrs.keys() for _, attrs in parsed.tags)
    policy = next(a["content"] for _, a in parsed.tags if "http-equiv" in a)
    assert policy.startswith("default-src 'none'; style-src 'unsafe-inline'")
    assert "<script>" in parsed.text
    assert not any(c in page for c in "\u202e\u200b\u2066")
    assert page.count("<u>") == page.count("</u>") > 1


def test_invisible_characters_of_tokens_are_written_as_escapes() -> None:
    from bertsmith.cli.shared.console import printable

    assert printable("a\u202eb\u200b\x1b[31m", keep="") == "a\\u202eb\\u200b\\x1b[31m"
    assert printable("汉字é", keep="") == "汉字é"


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        (["--grouping", "spam"], ConfigError, "did you mean 'span'"),
        (["--rate", "0"], ConfigError, "rate"),
        (["--rate", "2"], ConfigError, "rate"),
        (["--replacement", "similar"], ConfigError, "synonyms"),
        (["--grouping", "token", "--phrases", "x.txt"], ConfigError, "file"),
        (["--grouping", "entity", "--phrases", "missing.txt"], BertsmithError, "missing.txt"),
        (["--replacement", "all_mask", "--draw-by", "word"], ConfigError, "by"),
        (["--segmenter", "nobody"], ConfigError, "segmenter"),
    ],
)
def test_what_cannot_be_meant_is_refused(model, options, error, message) -> None:
    with pytest.raises(error, match=message):
        run(model, "cats play", *options)


def test_a_file_that_is_not_there_is_no_text(model) -> None:
    with pytest.raises(InputFileError, match=r"nothing\.txt: there is no such file"):
        run(model, "nothing.txt")


def test_empty_lines_count_for_nothing() -> None:
    made = Masking.of(MaskSettings(), tokenizer())
    found = preview(["", "  ", "cats play"], tokenizer(), made)
    assert (found.tally.texts, len(found.samples)) == (1, 1)
    empty = preview([], tokenizer(), made)
    assert (empty.tally.rate, empty.samples) == (0.0, [])


def test_figures_do_not_depend_on_how_texts_are_batched(monkeypatch) -> None:
    made = Masking.of(MaskSettings(), tokenizer())
    texts = [f"cats play words north south {'new ' * (n % 7)}" for n in range(50)]
    whole = preview(texts, tokenizer(), made, count=50)
    monkeypatch.setattr("bertsmith.objectives.masking.preview.BATCH", 7)
    parts = preview(texts, tokenizer(), made, count=50)
    assert whole.samples == parts.samples
    assert whole.tally == parts.tally
