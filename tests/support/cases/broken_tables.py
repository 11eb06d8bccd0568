"""Broken TSV and CSV files: 25 faults and more of each."""

from __future__ import annotations

import gzip
from typing import Any

from broken import Broken, at

TSV = ["text\tlabel", "a fine day\tpos", "a dull one\tneg", "quite good\tpos", "no, bad\tneg"]
PAIR = ["text_a\ttext_b\tlabel", "a\tb\t1", "c d\te f\t0", "g h\ti\t1", "j\tk l\t0"]
SCORES = ["text\tscore", "a fine day\t3.5", "a dull one\t1.25", "quite good\t4.75", "bad\t0.5"]
MANY = ["text\tlabels", "one thing\ta|b", "two things\ta", "three\tb|c", "four now\tc|a"]
MARKS = ["text\trude\tloud", "one\t1\t0", "two now\t0\t1", "three\t0\t0", "four\t1\t1"]
PICK = ["context\tchoice0\tchoice1\tlabel", "a\tb\tc\t0", "d\te\tf\t1", "g\th\ti\t0", "j\tk\tl\t1"]
CSV = ["text,label", "a fine day,pos", '"a dull, sad one",neg', "quite good,pos", "bad,neg"]
SEMI = ["text;label", "a fine day;pos", "a dull, sad one;neg", "quite good;pos", "bad;neg"]
LONG = b"x" * (50 << 20)


def tsv(name: str, bad: str | bytes, place: str, says: str, **more: Any) -> Broken:
    line = more.pop("line", 4)
    rows = more.pop("rows", TSV)
    return Broken(f"{name}.tsv", at(line, rows, bad), line, place, says, **more)


def csv(name: str, bad: str | bytes, place: str, says: str, **more: Any) -> Broken:
    line = more.pop("line", 4)
    rows = more.pop("rows", CSV)
    return Broken(f"{name}.csv", at(line, rows, bad), line, place, says, **more)


def whole(name: str, content: bytes, place: str, says: str, **more: Any) -> Broken:
    return Broken(name, content, more.pop("line", 1), place, says, good=0, fatal=True, **more)


JOINED = "\n".join(TSV).encode()
TSV_FAULTS = [
    tsv("few", "only a text", "column label", r"1 column, but the header has 2; add what is miss"),
    tsv("many", "a\tb\tpos", "column 3", r"3 columns, but the header has 2; remove the stray tab"),
    tsv("empty-text", "\tpos", "column text", r"the text is empty; fill it in, remove the row"),
    tsv("blank-text", " \u3000\tpos", "column text", r"white space only; fill it in"),
    tsv("empty-label", "good\t", "column label", r"the label is empty; write the label, or remove"),
    tsv("blank-label", "good\t  ", "column label", r"label is only white space; write the label"),
    tsv("nul", "go\0od\tpos", "column text", r"NUL character.*; remove it, or set --encoding"),
    tsv("nul-label", "good\tp\0s", "column label", r"the label holds a NUL character; remove it"),
    tsv(
        "latin", b"caf\xe9 noir\tpos", "column 4", r"0xe9 at byte \d+ is not valid utf-8.*; .*latin"
    ),
    tsv("bad-byte", b"good \xff\tpos", "column 6", r"0xff at byte \d+ is not valid utf-8.*; \S+"),
    Broken("cut.tsv", JOINED + "\nca\u4e2d".encode()[:-1], 6, "column 3", r"0xe4 .*; \S+"),
    tsv("header-again", "text\tlabel", "column 1", r"repeats the header.*; remove it"),
    tsv("mark", "good\t\ufeffpos", "column label", r"byte order mark.*joined.*; remove the mark"),
    tsv("lone-cr", "good\tpos\rbad\tneg", "column 3", r"3 columns.*; a lone carriage return.*line"),
    tsv(
        "long",
        LONG + b"\tpos",
        "column 1",
        r"52,428,805 bytes; .*; split the text into several lines",
    ),
    tsv(
        "typo",
        "good\tpso",
        "column label",
        r"no label is called 'pso'; did you mean 'pos'\?",
        spec={"labels": ("neg", "pos")},
    ),
    tsv(
        "other",
        "good\tzzz",
        "column label",
        r"'zzz'; the labels are 'neg', 'pos'",
        spec={"labels": ("neg", "pos")},
    ),
    tsv(
        "no-number",
        "good\tfine",
        "column score",
        r"'fine' is no finite number; write a number",
        rows=SCORES,
        spec={"task": "regress"},
    ),
    tsv(
        "infinite",
        "good\tinf",
        "column score",
        r"'inf' is no finite number; write a number",
        rows=SCORES,
        spec={"task": "regress"},
    ),
    tsv(
        "comma",
        "good\t3,5",
        "column score",
        r"'3,5' is no finite number; write a point",
        rows=SCORES,
        spec={"task": "regress"},
    ),
    tsv("no-score", "good\t", "column score", r"the score is empty; write a number", rows=SCORES),
    tsv(
        "hole",
        "good\ta||b",
        "column labels",
        r"the label is empty; write the label",
        rows=MANY,
        spec={"task": "multilabel", "label_separator": "|"},
    ),
    tsv(
        "double",
        "good\ta|a",
        "column labels",
        r"'a' stands twice in one row; remove",
        rows=MANY,
        spec={"task": "multilabel", "label_separator": "|"},
    ),
    tsv(
        "mark-word",
        "good\t1\tmaybe",
        "column loud",
        r"'maybe' does not say.*; write 1 or 0",
        rows=MARKS,
        spec={"label": ("rude", "loud"), "task": "multilabel"},
    ),
    tsv(
        "choice",
        "a\tb\tc\t2",
        "column label",
        r"'2' is not the number of a choice; write 0 to 1",
        rows=PICK,
    ),
    tsv("half-pair", "only one\t\t1", "column text_b", r"the text is empty; fill it in", rows=PAIR),
    whole("mac.tsv", JOINED.replace(b"\n", b"\r"), "column 1", r"carriage returns.*; convert them"),
    whole("empty.tsv", b"", "column 1", r"the file is empty; give one"),
    whole("header.tsv", b"text\tlabel\n", "column 1", r"holds no rows; give one"),
    whole(
        "wide.tsv", JOINED.decode().encode("utf-16-le"), "byte 0", r"utf-16-le; read it with --enc"
    ),
    whole(
        "twice.tsv",
        b"text\ttext\nab c\tpos\n",
        "column text",
        r"2 columns are called.*rename",
        spec={"text": ("text",), "header": True},
    ),
    whole(
        "absent.tsv",
        JOINED,
        "column body",
        r"no column is called 'body'.*the columns are 1: 't",
        spec={"text": ("body",)},
    ),
    whole(
        "beyond.tsv",
        JOINED,
        "column 3",
        r"there is no such column; the columns are 1: 'text'",
        spec={"text": (3,)},
    ),
    whole(
        "wrong.tsv",
        "text\tlabel\n今天天气很好\tpos\n".encode(),
        "byte 0",
        r"declared as gbk.*valid UTF-8.*; read it with",
        spec={"encoding": "gbk"},
    ),
]

PACKED = gzip.compress("\n".join(CSV).encode() * 999)
CSV_FAULTS = [
    csv(
        "few", "only a text", "column label", r"1 column, but the header has 2; add what is missing"
    ),
    csv("many", "so, so,neg", "column 3", r"3 columns.*; put double quotes around a cell"),
    csv(
        "open", '"never closed,pos', "column 1", r"the quote that opens here is never closed; close"
    ),
    csv("open-last", '"never closed,pos', "column 1", r"never closed; close it", line=6),
    csv("open-label", 'good,"pos', "column 2", r"never closed; close it"),
    csv(
        "open-before",
        '"open,pos',
        "column 1",
        r"'a' stands after the quote that closes.*line 4; cl",
        line=2,
    ),
    csv("after", '"good" one,pos', "column 1", r"' ' stands after the quote.*; close the quote"),
    csv("inner", '"a "good" one",pos', "column 1", r"'g' stands after the quote.*written twice"),
    csv("spaced", 'good, "pos, neg"', "column 3", r"3 columns.*; put double quotes around"),
    csv("empty-text", '"",pos', "column text", r"the text is empty; fill it in"),
    csv("blank-text", '"\n ",pos', "column text", r"white space only; fill it in"),
    csv("empty-label", "good,", "column label", r"the label is empty; write the label"),
    csv("quoted-label", 'good,""', "column label", r"the label is empty; write the label"),
    csv("nul", "go\0od,pos", "column text", r"NUL character.*; remove it"),
    csv("bad-byte", b"good \xff,pos", "column 6", r"0xff at byte \d+ .*; \S+"),
    Broken(
        "inside.csv", at(4, CSV, b'"good\n\xff",pos'), 5, "column 1", r"0xff at byte \d+ .*; \S+"
    ),
    csv("gbk", "今天天气很好".encode("gbk") + b",pos", "column 1", r"0xbd at byte .*gb18030"),
    csv("header-again", "text,label", "column 1", r"repeats the header.*; remove it"),
    csv("mark", "good,\ufeffpos", "column label", r"byte order mark.*; remove the mark"),
    csv("lone-cr", "good,pos\rbad,neg", "column 3", r"3 columns.*; a lone carriage return"),
    csv(
        "long",
        b'"' + LONG[: 2 << 20] + b'",pos',
        "column 1",
        r"bytes; the limit is .*; split the text",
        longest=1 << 20,
    ),
    csv("semi-few", "only text", "column label", r"1 column.*; add.* with a semicolon", rows=SEMI),
    csv("semi-many", "a; b; c", "column 3", r"3 columns.*double quotes.*semicolon", rows=SEMI),
    csv(
        "typo",
        "good,positve",
        "column label",
        r"'positve'; did you mean 'positive'\?",
        spec={"labels": ("positive", "pos", "neg")},
    ),
    csv(
        "not-one",
        "good,high",
        "column label",
        r"'high' is no finite number; write a number",
        rows=[row.replace("pos", "1.5").replace("neg", "2.5") for row in CSV],
        spec={"task": "regress"},
    ),
    whole("torn.csv.gz", PACKED[: len(PACKED) // 2], "", r"not a whole .gz file.*; check its size"),
    whole(
        "twice.csv",
        b"label,label\nab c,pos\n",
        "column label",
        r"2 columns are called.*rename",
        spec={"text": (1,), "label": ("label",), "header": True},
    ),
    whole("nothing.csv", b"\n\n \n", "column 1", r"the file is blank; give one with rows"),
    whole(
        "name.csv",
        b"a fine day,pos\na dull one,neg\n",
        "'text'",
        r"read without a header; .*set",
        spec={"header": False, "text": ("text",)},
    ),
]
