"""Answers and spans: where a text stands is where it is found, or the row is named."""

from __future__ import annotations

import json
import random
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertsmith.labeled import Answers, DataSpec, Tagged, read_examples
from bertsmith.labeled.formats.spans import Marking, nearest, units_of
from bertsmith.labeled.read.reject import BadRowError, RowAccount
from bertsmith.labeled.read.write import spans_of
from bertsmith.text.tokenizer import Tokenizer

WORDS = ["river", "Élan", "e\u0301te\u0301", "naïve", "42", "x²", "ﬁn"]
SIGNS = ["。", ",", "!", "—"]
SCRIPTS = ["北", "京", "漢", "字", "\U00020000", "\U0002a6d6"]
ASTRAL = ["\U0001f600", "\U0001f468\u200d\U0001f469", "\U0001d54f", "\U00010330"]
GAPS = [" ", "\r\n", "\n", "\u3000", "  "]
CASES = 1_000


def tokenizer() -> Tokenizer:
    letters = {c for piece in [*WORDS, *SIGNS, *SCRIPTS, *ASTRAL] for c in piece}
    shapes = {unicodedata.normalize("NFD", c) for c in letters} | letters
    known = sorted({c for piece in shapes for c in piece} | {c.lower() for c in letters})
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *known, *(f"##{c}" for c in known)]
    return Tokenizer.from_files(
        {
            "vocab.txt": "".join(f"{token}\n" for token in dict.fromkeys(tokens)).encode(),
            "tokenizer_config.json": b'{"do_lower_case": true}',
        }
    )


def context(rng: random.Random) -> list[str]:
    """Pieces, every second one a gap or nothing between signs and scripts."""
    pieces: list[str] = []
    for _ in range(rng.randint(3, 12)):
        pieces.append(rng.choice(rng.choice([WORDS, SIGNS, SCRIPTS, ASTRAL])))
        pieces.append(rng.choice(GAPS))
    return pieces


def case(rng: random.Random, number: int) -> tuple[dict[str, object], str, str]:
    """A paragraph, and what should become of it: kept, moved or rejected."""
    pieces = context(rng)
    first = 2 * rng.randrange(len(pieces) // 2)
    last = first + 2 * rng.randint(0, (len(pieces) - first) // 2 - 1)
    text = "".join(pieces)
    start = len("".join(pieces[:first]))
    answer = "".join(pieces[first : last + 1])
    fate = rng.choice(["kept"] * 6 + ["moved", "utf-16", "rejected"])
    place, said = start, answer
    if fate == "moved":
        place = rng.choice([-1, start + 3, start - 2, 10**6])
    elif fate == "utf-16":
        place = len(text[:start].encode("utf-16-le")) // 2
    elif fate == "rejected":
        said = answer + "nowhere"
    question = {
        "id": f"q{number}",
        "question": "?",
        "answers": [{"text": said, "answer_start": place}],
    }
    return {"context": text, "qas": [question]}, answer, fate


def bare(text: str) -> str:
    """A text after the tokenizer's normalization, without gaps."""
    parts = unicodedata.normalize("NFD", text.lower())
    return "".join(
        c for c in parts if unicodedata.category(c) not in ("Mn", "Cf") and not c.isspace()
    )


@pytest.mark.reliability
def test_each_answer_maps_to_tokens_of_its_text_or_is_named(tmp_path: Path) -> None:
    rng = random.Random(7)
    cases = [case(rng, number) for number in range(CASES)]
    data = [
        {"title": f"t{n}", "paragraphs": [paragraph]} for n, (paragraph, _, _) in enumerate(cases)
    ]
    path = tmp_path / "a.json"
    path.write_text(json.dumps({"version": "1.1", "data": data}, ensure_ascii=False), newline="")
    rows = read_examples(path, on_error="skip")
    found = {example.id: example for example in rows}
    rejected = [
        json.loads(line) for line in Path(f"{path}.rejected.jsonl").read_bytes().splitlines()
    ]
    encode = tokenizer()
    for number, (paragraph, answer, fate) in enumerate(cases):
        name = f"q{number}"
        if fate == "rejected":
            assert name not in found
            assert [row["id"] for row in rejected if row["id"] == name] == [name]
            continue
        example = found[name]
        assert isinstance(example.target, Answers)
        assert example.texts[1] == paragraph["context"]
        ((text, start),) = example.target.placed
        end = start + len(text)
        assert text == answer == example.texts[1][start:end]
        offsets = encode.encode(example.texts[1]).offsets.tolist()
        inside = [(a, b) for a, b in offsets if a < end and b > start]
        mapped = example.texts[1][inside[0][0] : inside[-1][1]] if inside else ""
        assert bare(mapped) == bare(answer), (name, fate)
    fates = [fate for _, _, fate in cases]
    assert len(found) + len(rejected) == CASES
    assert len(rejected) == fates.count("rejected") == rows.account.rows_rejected > 50
    assert rows.account.repaired >= fates.count("moved") * 0.9 > 50


@given(st.text("ab", max_size=12), st.text("ab", min_size=1, max_size=3), st.integers(-3, 15))
def test_the_nearest_place_is_nearest(text: str, piece: str, start: int) -> None:
    places = [at for at in range(len(text)) if text.startswith(piece, at)]
    found = nearest(text, piece, start)
    if not places:
        assert found is None
    else:
        assert found in places
        asked = max(start, 0)
        assert abs(found - asked) == min(abs(place - asked) for place in places)


@given(st.text(max_size=30))
def test_units_cover_all_but_white_space_and_never_overlap(text: str) -> None:
    units = units_of(text)
    inside = [place for start, end in units for place in range(start, end)]
    assert inside == sorted(set(inside))
    assert set(range(len(text))) - set(inside) == {i for i, c in enumerate(text) if c.isspace()}


@given(st.text("ab 北京,e\u0301", min_size=1, max_size=20), st.data())
def test_tags_mark_exactly_the_spans(text: str, data: st.DataObject) -> None:
    cuts = sorted(set(data.draw(st.lists(st.integers(0, len(text)), max_size=6))))
    spans = [(a, b, "K" if a % 2 else "L") for a, b in zip(cuts[::2], cuts[1::2], strict=False)]
    spans = [span for span in spans if text[span[0] : span[1]].strip()]
    marking = Marking(text, field="f", place="p", overlap=None, account=RowAccount())
    for span in spans:
        marking.add(span, "f")
    bare = []
    for start, end, kind in spans:
        piece = text[start:end]
        bare.append((start + len(piece) - len(piece.lstrip()), start + len(piece.rstrip()), kind))
    assert spans_of(marking.tagged()) == bare


def marked(
    text: str, *spans: tuple[int, int, str], overlap: str = "longest"
) -> tuple[Tagged, RowAccount]:
    account = RowAccount()
    marking = Marking(text, field="f", place="line 1", overlap=overlap, account=account)
    for span in spans:
        marking.add(span, "f")
    return marking.tagged(), account


def test_a_span_inside_another_is_left_out_and_counted() -> None:
    found, account = marked("Bank of Rome", (0, 12, "ORG"), (8, 12, "LOC"))
    assert found.tags == ("B-ORG", "I-ORG", "I-ORG")
    assert (account.nested, account.notes()) == (
        1,
        ["1 span left out, being inside a longer one (line 1)"],
    )
    with pytest.raises(BadRowError, match="overlap"):
        marked("Bank of Rome", (0, 12, "ORG"), (8, 12, "LOC"), overlap="reject")


def test_a_word_is_cut_where_a_span_ends_and_gaps_are_trimmed() -> None:
    found, account = marked("Rome's sky ", (0, 4, "LOC"), (6, 11, "SKY"))
    assert found.units == ((0, 4), (4, 5), (5, 6), (7, 10))
    assert found.tags == ("B-LOC", "O", "O", "B-SKY")
    assert account.repaired == 1
    assert marked("unhappy", (2, 7, "A"))[0].units == ((0, 2), (2, 7))


def test_spans_of_words_beside_each_other_stay_two() -> None:
    found, _ = marked("北京上海", (0, 2, "LOC"), (2, 4, "LOC"))
    assert found.tags == ("B-LOC", "I-LOC", "B-LOC", "I-LOC")


@pytest.mark.parametrize(("end", "kept"), [("inclusive", 2), ("exclusive", 3)])
def test_the_end_of_a_span_is_guessed_from_its_text(end: str, kept: int, tmp_path: Path) -> None:
    spans = [{"start": 0, "end": kept, "type": "PER", "entity": "Ada"}]
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps({"text": "Ada met Bob", "entities": spans}) + "\n")
    rows = read_examples(path)
    (example,) = rows
    assert rows.spec.span_end == end
    assert isinstance(example.target, Tagged)
    assert example.target.tags == ("B-PER", "O", "O")
    assert rows.account.repaired == 0
    (again,) = read_examples(path, DataSpec(span_end="exclusive"))
    assert again.target == example.target
