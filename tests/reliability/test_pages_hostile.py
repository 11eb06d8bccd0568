"""H1, H2: whatever a record says, a page has the elements of its benign twin and loads nothing."""

from __future__ import annotations

import json
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from finetune_record import finetune_page, finetune_record
from html_tree import PAYLOADS, Tree
from proof_cases import CASES, classify_case, example

from bertsmith.cli.views.mask import preview_page as mask_page
from bertsmith.evaluation.proof import prove
from bertsmith.labeled.example import Label
from bertsmith.objectives.masking.masking import MaskSettings
from bertsmith.objectives.masking.preview import Piece, Preview, Tally
from bertsmith.report.curves import curves_page
from bertsmith.report.finetune.model_card import model_card
from bertsmith.tasks.classify import Classify
from bertsmith.tasks.prediction import Prediction

pytestmark = pytest.mark.reliability

ALLOWED = {"html", "head", "meta", "title", "style", "body", "h1", "h2", "h3", "p", "pre", "div"}
ALLOWED |= {"table", "tr", "th", "td", "span", "b", "u", "bdi", "details", "summary"}
ALLOWED |= {"svg", "g", "line", "rect", "circle", "polyline", "text"}
SPOKEN = {"aria-label", "content"}  # attributes that are read out, or are the policy itself
# What decides which sections there are; everything else of a record is shown as it is.
STRUCTURE = {"kind", "task", "main"}
# Mappings whose keys are data: labels, figures, splits.
NAMED_BY_DATA = {"labels", "figures", "rows", "files", "losses", "cut", "entity_errors", "splits"}
RECORDS = {name: finetune_record(name) for name in CASES}


def planted(value: Any, word: str, key: str = "", counter: Iterator[int] | None = None) -> Any:
    """A record with a word in the place of every text, and in every name that comes from data."""
    numbers = counter or iter(range(10**6))
    if isinstance(value, dict):
        named = key in NAMED_BY_DATA
        return {
            (f"{word}{next(numbers)}" if named else name): planted(part, word, name, numbers)
            for name, part in value.items()
        }
    if isinstance(value, list):
        return [planted(part, word, key, numbers) for part in value]
    return word if isinstance(value, str) and key not in STRUCTURE else value


def kinds_of_places(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The path of every text; entries of a list count as one."""
    if isinstance(value, dict):
        for name, part in value.items():
            yield from kinds_of_places(part, (*path, name))
    elif isinstance(value, list):
        for part in value:
            yield from kinds_of_places(part, (*path, "*"))
    elif isinstance(value, str) and path[-1] not in STRUCTURE:
        yield path


def with_word(value: Any, path: tuple[str, ...], word: str) -> Any:
    """A record with a word in one place only."""
    if not path:
        return word if isinstance(value, str) else value
    if path[0] == "*":
        return [with_word(part, path[1:], word) for part in value]
    if not isinstance(value, dict) or path[0] not in value:
        return value
    return {**value, path[0]: with_word(value[path[0]], path[1:], word)}


def preview(word: str, count: int = 3) -> str:
    fates = ("shown", "mask", "random", "keep", "similar")
    pieces = [Piece(word, word, fates[n % 5], n % 3 == 0, n % 3 == 2) for n in range(3 * count)]
    tally = Tally(texts=1, tokens=9, hidden=3, units=1, fates=Counter(mask=3), lengths=Counter([1]))
    return mask_page(Preview([pieces], tally), {"hidden": 0.15}, MaskSettings())


def run_page(word: str) -> str:
    row = {"kind": "train", "step": 1, "losses": {word: 1.0}, "accuracy": {word: 0.5}, "rate": 1.0}
    end = {"kind": "eval", "step": 1, "losses": {word: 1.0}, "counts": {word: 3}}
    wrong = {"kind": "diverged", "step": 1, "message": word}
    return curves_page([row, end, wrong], title=word, settings=word)


def report(name: str) -> Callable[[str], str]:
    return lambda word: finetune_page(planted(RECORDS[name], word), title=word)


PAGES: dict[str, Callable[[str], str]] = {
    **{f"report of {name}": report(name) for name in CASES},
    "curves": run_page,
    "mask preview": preview,
}


@pytest.mark.parametrize("name", PAGES)
def test_no_payload_adds_an_element_or_an_attribute(name) -> None:
    benign = Tree(PAGES[name]("word")).tags
    for payload in PAYLOADS:
        assert Tree(PAGES[name](payload)).tags == benign, payload


def test_no_single_field_lets_a_payload_through() -> None:
    payload = " ".join(PAYLOADS)
    seen: set[tuple[str, ...]] = set()
    for name, record in RECORDS.items():
        for path in set(kinds_of_places(record)) - seen:
            seen.add(path)
            benign = Tree(finetune_page(with_word(record, path, "word"), title="x")).tags
            hostile = Tree(finetune_page(with_word(record, path, payload), title="x")).tags
            assert hostile == benign, (name, path)
    assert len(seen) > 30


@pytest.mark.parametrize("name", CASES)
def test_a_record_that_is_nothing_but_payloads_is_still_a_harmless_page(name) -> None:
    def spoiled(value: Any, word: str) -> Any:
        if isinstance(value, dict):
            return {key: spoiled(part, word) for key, part in value.items()}
        if isinstance(value, list):
            return [spoiled(part, word) for part in value]
        return word

    for payload in PAYLOADS[:4]:
        record = spoiled(RECORDS[name], payload)
        harmless(finetune_page(record, title=payload))
        assert "<script" not in model_card(record, name=payload)
    for value in (None, [], 7, "x"):
        harmless(finetune_page(dict.fromkeys(RECORDS[name], value), title="x"))
        model_card(dict.fromkeys(RECORDS[name], value))


def harmless(page: str) -> None:
    """No element that loads or runs, no handler, no address outside of words."""
    tree = Tree(page)
    assert {tag for tag, _ in tree.tags} <= ALLOWED
    for name, value in tree.attributes:
        assert not name.startswith("on")
        assert name not in ("src", "href", "srcdoc", "srcset", "data", "action", "xlink:href")
        assert name in SPOKEN or not ("url(" in value or "//" in value)


@pytest.mark.parametrize("name", PAGES)
def test_a_page_loads_nothing_runs_nothing_and_says_so(name) -> None:
    page = PAGES[name]("http://example.org/x.js url(https://example.org/y)")
    harmless(page)
    style = page.partition("<style>")[2].partition("</style>")[0]
    assert "@import" not in style
    assert "url(" not in style
    policies = [value for value in Tree(page).values if "default-src" in value]
    assert len(policies) == 1
    assert policies[0].startswith("default-src 'none';")
    assert "script-src" not in policies[0]


@pytest.mark.parametrize("name", PAGES)
def test_unseen_and_turning_characters_are_spelled_out(name) -> None:
    page = PAGES[name]("a\u202eb\u200bc\u2066d\ufeffe\u2028f\x00g")
    assert not [c for c in page if unicodedata.category(c) in ("Cf", "Zl", "Zp", "Cs", "Co")]
    assert not [c for c in page if unicodedata.category(c) == "Cc" and c != "\n"]
    for code in ("202e", "200b", "2066", "feff"):
        assert code in page.lower()


def test_embedded_json_is_text_and_nothing_else() -> None:
    record = {**RECORDS["classify"], "recipe": {"x": "</pre><script>alert(1)</script>"}}
    page = finetune_page(record, title="x")
    assert "<script" not in page
    words = "".join(Tree(page).texts)
    inside = words[words.index('{\n  "x"') :]
    assert json.JSONDecoder().raw_decode(inside)[0] == record["recipe"]


def test_texts_of_ten_thousand_tokens_stay_small_pages() -> None:
    long = "token " * 10_000
    rows = [example(n, [long], Label("a")) for n in range(60)]
    said = [
        Prediction(value="b", probabilities={"a": 0.1, "b": 0.9}, confidence=0.9, cut=9_500)
        for _ in rows
    ]
    proof = prove(Classify(labels=("a", "b")), rows, said).to_json()
    assert len(finetune_page({"task": "classify", "dev": proof}, title="x").encode()) < 5_000_000
    assert len(preview("token", 10_000).encode()) < 5_000_000
    assert len(run_page(long).encode()) < 5_000_000


def test_a_page_of_many_labels_stays_small() -> None:
    labels = [f"label number {n}" for n in range(600)]
    record = finetune_record("classify", classify_case(3_000, labels))
    assert len(finetune_page(record, title="x").encode()) < 1_000_000
