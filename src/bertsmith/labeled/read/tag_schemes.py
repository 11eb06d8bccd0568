"""Tags of words in any of the usual schemes, checked and turned into BIO."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from bertsmith.files.faults import BadRowError
from bertsmith.labeled.spec import Scheme
from bertsmith.wording import shown

TAG = re.compile(r"([BIESMLU])(?:[-_](.+))?")
PREFIXES: Mapping[str, str] = {
    "bio": "BI",
    "iob1": "BI",
    "bioes": "BIES",
    "bilou": "BILU",
    "bmes": "BMES",
}
FOUR_LETTERS: tuple[Scheme, ...] = ("bioes", "bmes", "bilou")
# One automaton serves the four-letter schemes: they differ in names only.
AS_BIOES = {"M": "I", "L": "E", "U": "S"}
Tags = Sequence[str]


class BadTagError(BadRowError):
    """A tag that cannot stand where it does; `index` is that of its word."""

    def __init__(self, index: int, reason: str, advice: str) -> None:
        super().__init__(reason, advice)
        self.index = index


def to_bio(tags: Tags, scheme: Scheme) -> tuple[str, ...]:
    """The tags of one sentence as BIO; "plain" tags (parts of speech) stay as they are."""
    if scheme == "plain":
        for index, tag in enumerate(tags):
            if not tag:
                raise BadTagError(index, "the tag is empty", "write the tag of the word")
        return tuple(tags)
    if scheme == "io":
        return _io(tags)
    parts = [_parted(index, tag, scheme) for index, tag in enumerate(tags)]
    return READERS[scheme](parts)


Parts = Sequence[tuple[str, str]]


def _parted(index: int, tag: str, scheme: Scheme) -> tuple[str, str]:
    """The letter and the kind of a tag; ("O", "") outside."""
    if tag == "O":
        return "O", ""
    match = TAG.fullmatch(tag)
    letters = PREFIXES[scheme]
    if match is None or match[1] not in letters:
        known = ", ".join(f"{letter}-KIND" for letter in letters)
        what = "the tag is empty" if not tag else f"{shown(tag)} is no tag of the scheme {scheme}"
        raise BadTagError(index, what, f"write O, {known}, or set another --scheme")
    return match[1], match[2] or ""


def _spelled(letter: str, kind: str) -> str:
    return f"{letter}-{kind}" if kind else letter


def _bio(parts: Parts, *, begun_by_i: bool = False) -> tuple[str, ...]:
    """BIO as it is; in IOB1 (`begun_by_i`) also I begins a span after another kind."""
    bio = []
    before = ("O", "")
    for index, (letter, kind) in enumerate(parts):
        begins = letter == "I" and (before[0] == "O" or before[1] != kind)
        if begins and not begun_by_i:
            tag, last = _spelled("I", kind), _spelled(*before)
            raise BadTagError(
                index,
                f"{tag} follows {last if index else 'the start of the sentence'}: nothing of its "
                "kind was begun",
                f"write {_spelled('B', kind)} where it begins, or set --scheme iob1",
            )
        bio.append("O" if letter == "O" else _spelled("B" if begins else letter, kind))
        before = (letter, kind)
    return tuple(bio)


def _bioes(parts: Parts) -> tuple[str, ...]:
    bio = []
    inside: str | None = None
    for index, (written, kind) in enumerate(parts):
        letter = AS_BIOES.get(written, written)
        if letter in ("I", "E"):
            if inside is None or inside != kind:
                raise BadTagError(
                    index,
                    f"{_spelled(written, kind)} stands where nothing of its kind was begun",
                    f"write {_spelled('B', kind)} where it begins",
                )
        elif inside is not None:
            raise BadTagError(
                index,
                f"{_spelled('B', inside)} is not ended before {_spelled(written, kind)}",
                "end it with its last tag, or tag it as a single word",
            )
        inside = kind if letter in ("B", "I") else None
        bio.append("O" if letter == "O" else _spelled("B" if letter in "BS" else "I", kind))
    if inside is not None:
        raise BadTagError(
            len(parts) - 1,
            f"{_spelled('B', inside)} is not ended before the sentence ends",
            "end it with its last tag, or tag it as a single word",
        )
    return tuple(bio)


READERS: Mapping[str, Callable[[Parts], tuple[str, ...]]] = {
    "bio": _bio,
    "iob1": partial(_bio, begun_by_i=True),
    "bioes": _bioes,
    "bilou": _bioes,
    "bmes": _bioes,
}


def _io(tags: Tags) -> tuple[str, ...]:
    """Neighbors of one kind are one span: this scheme cannot part them."""
    bio = []
    before = "O"
    for index, tag in enumerate(tags):
        if not tag:
            raise BadTagError(index, "the tag is empty", "write O or the kind of the word")
        kind = tag[2:] if tag.startswith(("I-", "I_")) and len(tag) > 2 else tag
        bio.append("O" if kind == "O" else f"{'I' if kind == before else 'B'}-{kind}")
        before = kind
    return tuple(bio)


def guess_scheme(sentences: Sequence[Tags]) -> tuple[Scheme, str]:
    """The scheme that the tags of some sentences are written in, and why."""
    tags = {tag for sentence in sentences for tag in sentence}
    letters = {match[1] for tag in tags if (match := TAG.fullmatch(tag))}
    named = sum(bool(TAG.fullmatch(tag)) for tag in tags - {"O"})
    if named < len(tags - {"O"}) / 2:
        if "O" in tags:
            return "io", "tags have no prefix, and O stands outside"
        return "plain", "tags have no prefix and none is O: taken as they are"
    # The scheme that most sentences are legal in; where all are alike, the plainest.
    legal = {scheme: sum(_legal(tags, scheme) for tags in sentences) for scheme in FOUR_LETTERS}
    best = max(FOUR_LETTERS, key=lambda name: (legal[name], len(letters & set(PREFIXES[name]))))
    if letters - {"B", "I"} and legal[best] > sum(_legal(tags, "iob1") for tags in sentences):
        return best, f"tags begin with {', '.join(PREFIXES[best])}"
    return _two_letters(sentences)


def _legal(tags: Tags, scheme: Scheme) -> bool:
    try:
        to_bio(tags, scheme)
    except BadTagError:
        return False
    return True


def _two_letters(sentences: Sequence[Tags]) -> tuple[Scheme, str]:
    bare = begun = 0  # spans that begin with I, and B that only begin what nothing touches
    for sentence in sentences:
        before = "O"
        for tag in sentence:
            if tag[:1] == "I" and before[1:] != tag[1:]:
                bare += 1
            elif tag[:1] == "B" and before[1:] != tag[1:]:
                begun += 1
            before = tag
    if bare > begun:
        return "iob1", "spans begin with I, and with B only next to another of their kind"
    if bare:
        return "bio", f"tags begin with B or I; {bare:,} spans of the sample begin with I"
    return "bio", "every span begins with B"
