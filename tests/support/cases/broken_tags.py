"""Broken CoNLL files."""

from __future__ import annotations

from typing import Any

from broken import Broken

BIO = "EU\tB-ORG\nrejects\tO\nGerman\tB-MISC\ncall\tO\n"
SECOND = "Peter\tB-PER\nBlackburn\tI-PER\n"
BIOES = "EU\tS-ORG\nrejects\tO\n\nPeter\tB-PER\nBlackburn\tE-PER\n"
BMES = "我\tS-PER\n在\tO\n\n北\tB-LOC\n京\tE-LOC\n"
BILOU = "EU\tU-ORG\nrejects\tO\n\nPeter\tB-PER\nBlackburn\tL-PER\n"
FOUR = "EU NNP B-NP B-ORG\nrejects VBZ B-VP O\n\nPeter NNP B-NP B-PER\nB. NNP I-NP I-PER\n"
WIKI = "en:Rome\tB-LOC\nen:fell\tO\n\nen:Ada\tB-PER\nen:Byron\tI-PER\n"


def sentence(name: str, bad: str | bytes, line: int, place: str, says: str, **more: Any) -> Broken:
    """The bad sentence stands second of three; `line` is counted within it."""
    before = more.pop("before", BIO + "\n" + SECOND)
    first = before.count("\n") + 2
    content = before.encode() + b"\n" + (bad if isinstance(bad, bytes) else bad.encode())
    return Broken(f"{name}.conll", content + b"\n\n", first + line - 1, place, says, good=2, **more)


CONLL_FAULTS = [
    sentence(
        "no-tag", "Rome\nfell\tO", 1, "column 1", r"1 column, but the other lines have 2; write"
    ),
    sentence(
        "three", "Rome\tfell\tO", 1, "column 3", r"3 columns, but .* 2; write the word and its"
    ),
    sentence("spaces", "Rome O\nfell\tO", 1, "column 1", r"1 column, .*; put a tab between"),
    sentence("inside", "Rome\tO\nfell\tI-LOC", 2, "column 2", r"I-LOC follows O.*; write B-LOC"),
    sentence(
        "start", "Rome\tI-LOC", 1, "column 2", r"follows the start of the sentence.*; write B-L"
    ),
    sentence(
        "other", "A\tB-PER\nB\tI-LOC", 2, "column 2", r"I-LOC follows B-PER.*set --scheme iob1"
    ),
    sentence(
        "letter", "Rome\tX-LOC", 1, "column 2", r"'X-LOC' is no tag of the scheme bio; write O"
    ),
    sentence(
        "lower", "Rome\tb-LOC", 1, "column 2", r"'b-LOC' is no tag of the scheme bio; write O"
    ),
    sentence("zero", "Rome\t0", 1, "column 2", r"'0' is no tag of the scheme bio; write O, B-KIND"),
    sentence("bare", "Rome\tLOC", 1, "column 2", r"'LOC' is no tag of the scheme bio; write O"),
    sentence("dangling", "Rome\tB-", 1, "column 2", r"'B-' is no tag of the scheme bio; write O"),
    sentence("empty", "Rome\t", 1, "column 2", r"the tag is empty; write O, B-KIND"),
    sentence("no-word", "\tO\nfell\tO", 1, "column 1", r"the word is empty; write the word"),
    sentence("blank-word", "\u3000\tO", 1, "column 1", r"the word is empty; write the word"),
    sentence("nul", "Ro\0me\tO", 1, "column 1", r"holds a NUL character; write the word"),
    sentence(
        "bad-byte", b"R\xf6m\tO", 1, "column 2", r"0xf6 at byte \d+ .*; it decodes as .*latin-1"
    ),
    sentence("later-byte", b"Rome\tO\nfell\xff\tO", 2, "column 5", r"0xff at byte \d+ .*; \S+"),
    sentence(
        "foreign", "Rome\tS-LOC", 1, "column 2", r"'S-LOC' is no tag of the scheme bio; write"
    ),
    sentence(
        "not-ended",
        "A\tB-PER\nB\tO",
        2,
        "column 2",
        r"B-PER is not ended before O; end it",
        before=BIOES,
    ),
    sentence(
        "last",
        "A\tO\nB\tB-PER",
        2,
        "column 2",
        r"not ended before the sentence ends; end it",
        before=BIOES,
    ),
    sentence(
        "not-begun",
        "A\tE-PER",
        1,
        "column 2",
        r"E-PER stands where nothing.*; write B-PER",
        before=BIOES,
    ),
    sentence(
        "single",
        "A\tB-PER\nB\tS-PER",
        2,
        "column 2",
        r"B-PER is not ended before S-PER; end",
        before=BIOES,
    ),
    sentence(
        "middle",
        "北\tM-LOC\n京\tE-LOC",
        1,
        "column 2",
        r"M-LOC stands where.*; write B-LOC",
        before=BMES,
    ),
    sentence(
        "mixed",
        "北\tB-LOC\n京\tE-PER",
        2,
        "column 2",
        r"E-PER stands where.*; write B-PER",
        before=BMES,
    ),
    sentence(
        "unit",
        "A\tB-PER\nB\tU-PER",
        2,
        "column 2",
        r"B-PER is not ended before U-PER; end it",
        before=BILOU,
    ),
    sentence(
        "four",
        "Rome NNP B-NP",
        1,
        "column 3",
        r"3 columns, but the other lines have 4; write",
        before=FOUR,
    ),
    sentence(
        "four-tag",
        "Rome NNP B-NP I-LOC",
        1,
        "column 4",
        r"I-LOC follows the start.*; write B-",
        before=FOUR,
    ),
    sentence(
        "prefix",
        "Rome\tB-LOC",
        1,
        "column 1",
        r"'Rome' does not begin with 'en:'.*; add it",
        before=WIKI,
    ),
    sentence(
        "only-prefix", "en:\tO", 1, "column 1", r"the word is empty; write the word", before=WIKI
    ),
    sentence(
        "kind",
        "Rome\tB-LOK",
        1,
        "column 2",
        r"'LOK'; did you mean 'LOC'\?",
        spec={"labels": ("ORG", "MISC", "PER", "LOC")},
    ),
    sentence(
        "endless", "Rome\tO\n" * 20_002, 1, "column 1", r"more than 20,000 words; put a blank"
    ),
]
