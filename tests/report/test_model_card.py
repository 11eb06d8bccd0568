"""The model card: a header that parsers read alike, and words that stay words."""

from __future__ import annotations

import re

import pytest
from finetune_record import finetune_record
from html_tree import PAYLOADS
from hypothesis import example, given
from hypothesis import strategies as st
from proof_cases import CASES

from bertsmith.report.elements.markdown import words, yaml_lines
from bertsmith.report.finetune.model_card import model_card

yaml = pytest.importorskip("yaml")


def header(card: str) -> dict:
    assert card.startswith("---\n")
    return yaml.safe_load(card[4:].partition("\n---\n")[0])


@pytest.fixture(scope="module")
def record() -> dict:
    return finetune_record()


@pytest.mark.parametrize("name", CASES)
def test_the_header_has_the_figures_in_the_form_of_model_hubs(name) -> None:
    told = finetune_record(name)
    found = header(model_card(told, name="mine"))
    (entry,) = found["model-index"]
    assert entry["name"] == "mine"
    assert [one["dataset"]["split"] for one in entry["results"]] == ["test", "dev"]
    for result in entry["results"]:
        figures = told[result["dataset"]["split"]]["figures"]
        values = [one["value"] for one in result["metrics"]]
        assert values == pytest.approx([v for v in figures.values() if v is not None], abs=1e-4)
    assert found["base_model"] == "bert-base-uncased"
    assert found["language"] == ["en"]
    assert "license" not in found


def test_a_script_is_no_language(record) -> None:
    assert "language" not in header(model_card({**record, "language": "latin"}))


def test_the_hubs_own_reader_takes_it(record) -> None:
    hub = pytest.importorskip("huggingface_hub")
    card = hub.ModelCard(model_card(record, name="mine"))
    found = {one.metric_name: one.metric_value for one in card.data.eval_results[:5]}
    assert found["accuracy"] == pytest.approx(record["test"]["figures"]["accuracy"])
    assert card.data.pipeline_tag == "text-classification"


def test_a_folder_on_a_disk_is_no_base_model_and_a_license_is_kept(record) -> None:
    for path in ("/home/me/models/bert", "./bert", "../x/y", "a/b/c"):
        card = model_card({**record, "model": path})
        assert "base_model" not in header(card)
        assert path not in card
    assert header(model_card({**record, "license": "mit"}))["license"] == "mit"
    assert header(model_card({**record, "model": "hfl/rbt3"}))["base_model"] == "hfl/rbt3"


def test_the_words_say_what_it_is_how_good_and_where_it_fails(record) -> None:
    card = model_card(record, name="mine")
    for expected in (
        "# mine",
        "fine-tuned from bert-base-uncased",
        "Accuracy 0.8500 on 100 test rows",
        "3 labels: neg, neutral, pos",
        "## Intended use",
        "- training: 120 steps, 4 epochs; best weights at step 90",
        "- time: 1 min 23 s",
        "in two splits (leakage)",
        "calibration error",
        'bertsmith.load("DIR")',
        "Over 3 seeds",
    ):
        assert expected in card
    assert "no test split" in model_card({**record, "test": None})


def test_it_says_whether_other_libraries_have_the_head(record) -> None:
    own = model_card(record)
    assert "- head input: the mean of all tokens, last layer" in own
    assert "transformers has no class for this head" in own
    published = model_card({**record, "head": {"kind": "published", "reads": "it"}})
    assert "load in transformers, too" in published
    assert "no class for this head" not in published


def test_an_empty_record_still_gives_a_card_that_can_be_read() -> None:
    card = model_card({})
    assert header(card)["library_name"] == "bertsmith"
    assert "# bert" in card


@example("\ud800 half a pair")
@example("\x85 \u2028 \ufeff \U000e0001 \x7f")
@example("<b>&amp;")
@given(st.text(st.characters(exclude_categories=[])))
def test_every_text_comes_back_from_the_header(value) -> None:
    seen = re.sub("[\ud800-\udfff]", "\ufffd", value)
    assert yaml.safe_load(yaml_lines({"key": value})[0]) == {"key": seen}


@given(
    st.recursive(
        st.text(max_size=5)
        | st.integers()
        | st.booleans()
        | st.floats(-1e6, 1e6).map(lambda value: round(value, 4)),
        lambda inner: (
            st.lists(inner.filter(lambda one: not isinstance(one, list)), max_size=3)
            | st.dictionaries(st.sampled_from("abc"), inner, min_size=1, max_size=3)
        ),
        max_leaves=8,
    )
)
def test_nested_values_come_back_from_the_header(value) -> None:
    text = "\n".join(yaml_lines({"key": value}))
    assert yaml.safe_load(text) == {"key": value}


@pytest.mark.parametrize("payload", [*PAYLOADS, "[x](http://e)", "**b**", "a|b", "```", "$x$"])
def test_text_in_markdown_is_never_markup(payload) -> None:
    shown = words(payload)
    assert "<" not in shown
    assert "\n" not in shown
    for mark in "`*_[]|~$":
        assert not re.search(rf"(?<!\\){re.escape(mark)}", shown)
    assert "http://" not in shown
    assert "\u202e" not in shown
