"""Tag schemes: every legal sequence of spans is written in each and read back as BIO."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertsmith.labeled.read.tag_schemes import guess_scheme, to_bio

SPANS = st.lists(st.tuples(st.integers(1, 4), st.sampled_from(["", "PER", "LOC.x"])), max_size=6)
# The letters for the first, inner, last word of a span, and for a single one.
LETTERS = {"bio": "BIIB", "bioes": "BIES", "bilou": "BILU", "bmes": "BMES"}


def written(spans: list[tuple[int, str]], scheme: str) -> list[str]:
    """Spans of so many words; no kind: outside."""
    first, inner, last, single = LETTERS[scheme]
    tags: list[str] = []
    for size, kind in spans:
        if not kind:
            tags += ["O"] * size
        elif size == 1:
            tags.append(f"{single}-{kind}")
        else:
            tags += [f"{first}-{kind}", *[f"{inner}-{kind}"] * (size - 2), f"{last}-{kind}"]
    return tags


@pytest.mark.parametrize("scheme", LETTERS)
@given(SPANS)
def test_every_scheme_reads_as_the_same_bio(scheme: str, spans: list[tuple[int, str]]) -> None:
    assert to_bio(written(spans, scheme), scheme) == tuple(written(spans, "bio"))  # type: ignore[arg-type]


@given(SPANS)
def test_iob1_begins_with_i_unless_a_span_of_its_kind_ends_before(
    spans: list[tuple[int, str]],
) -> None:
    bio = written(spans, "bio")
    iob1 = [
        tag if tag[0] != "B" or (n and bio[n - 1][1:] == tag[1:]) else f"I{tag[1:]}"
        for n, tag in enumerate(bio)
    ]
    assert to_bio(iob1, "iob1") == tuple(bio)


def test_kinds_without_prefix_join_where_they_touch() -> None:
    assert to_bio(["PER", "PER", "O", "LOC", "PER"], "io") == (
        "B-PER",
        "I-PER",
        "O",
        "B-LOC",
        "B-PER",
    )
    assert to_bio(["I-PER", "I-PER", "O"], "io") == ("B-PER", "I-PER", "O")
    assert to_bio(["B", "M", "E", "S"], "bmes") == ("B", "I", "I", "B")
    assert to_bio(["B_PER", "I_PER"], "bio") == ("B-PER", "I-PER")


@pytest.mark.parametrize(
    ("sentences", "scheme"),
    [
        ([["B-A", "I-A", "O"]], "bio"),
        ([["O", "O"]], "bio"),
        ([["I-A", "O", "I-B"], ["I-A", "B-A"]], "iob1"),
        ([["B-A", "I-A"], ["B-A", "O"], ["O", "I-A"]], "bio"),
        ([["S-A", "O"], ["B-A", "E-A"]], "bioes"),
        ([["B", "E", "S"], ["B", "M", "E"]], "bmes"),
        ([["U-A", "O"], ["B-A", "L-A"]], "bilou"),
        ([["PER", "O"]], "io"),
        ([["NN", "VB"]], "plain"),
    ],
)
def test_the_scheme_is_told_by_the_tags(sentences: list[list[str]], scheme: str) -> None:
    assert guess_scheme(sentences)[0] == scheme
