"""Data sets with planted faults of known places: typos, leaks, texts with two labels."""

from __future__ import annotations

import random
import string
from dataclasses import dataclass, field
from pathlib import Path

LABELS = ("business", "entertainment", "politics", "sport", "tech")
ONLY_DEV = "weather"
CHINESE = "酒店房间环境服务态度不错位置方便早餐一般价格便宜交通地铁机场商店前台"
SPACES = (" ", "  ", "\u00a0", "\u3000", " \u2009")


@dataclass
class Planted:
    """Lines of a file and, by kind, the truth: (line of the first, line of the second)."""

    train: list[tuple[str, str]] = field(default_factory=list)
    dev: list[tuple[str, str]] = field(default_factory=list)
    exact: set[tuple[int, int]] = field(default_factory=set)
    near: set[tuple[int, int]] = field(default_factory=set)
    conflicts: set[tuple[int, int]] = field(default_factory=set)
    typos: dict[str, str] = field(default_factory=dict)
    typo_lines: dict[str, int] = field(default_factory=dict)

    def write(self, folder: Path) -> None:
        for name, rows in (("train.tsv", self.train), ("dev.tsv", self.dev)):
            lines = ["text\tlabel", *(f"{text}\t{label}" for text, label in rows)]
            (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")


def planted(seed: int, clean: int = 10_000) -> Planted:
    """`clean` rows without a fault, and check D5's faults among them, in any order."""
    draw = random.Random(seed)
    texts = list(dict.fromkeys(_text(draw, number) for number in range(clean + 320)))
    own, rest = texts[:clean], texts[clean:]
    found = Planted()
    rows = [(text, draw.choice(LABELS)) for text in own]
    cut = clean * 9 // 10
    train, dev = rows[:cut], rows[cut:]
    for text in rest[:20]:
        meant = draw.choice(LABELS)
        wrong = _misspelled(draw, meant)
        while wrong in found.typos or wrong in LABELS:
            wrong = _misspelled(draw, meant)
        found.typos[wrong] = meant
        train.append((text, wrong))
    pairs: list[tuple[str, tuple[str, str], tuple[str, str]]] = []
    leaked = draw.sample(train[:cut], 400)
    for number, (text, label) in enumerate(leaked):
        copy = text if number < 200 else changed(draw, text)
        pairs.append(("exact" if number < 200 else "near", (text, label), (copy, label)))
        dev.append((copy, label))
    contested = []
    for text in rest[20:70]:
        one, two = draw.sample(LABELS, 2)
        contested.append(((text, one), (text, two)))
        train += contested[-1]
    dev.append((rest[70], ONLY_DEV))
    draw.shuffle(train)
    draw.shuffle(dev)
    found.train, found.dev = train, dev
    at = {row: line for line, row in enumerate(train, 2)}
    in_dev = {row: line for line, row in enumerate(dev, 2)}
    for kind, first, second in pairs:
        getattr(found, kind).add((at[first], in_dev[second]))
    found.conflicts = {(min(at[one], at[two]), max(at[one], at[two])) for one, two in contested}
    found.typo_lines = {label: at[row] for row in train if (label := row[1]) in found.typos}
    return found


def changed(draw: random.Random, text: str) -> str:
    """The same text in another case, with other spaces, or in another width; never the same."""
    while True:
        other = text
        for change in draw.sample((_case, _space, _width), draw.randint(1, 3)):
            other = change(draw, other)
        if other != text:
            return other


def _text(draw: random.Random, number: int) -> str:
    words = ["".join(draw.choices(string.ascii_lowercase, k=draw.randint(2, 9))) for _ in range(8)]
    if number % 3 == 0:  # Chinese, with a name in Latin letters
        return "".join(draw.choices(CHINESE, k=30)) + words[0].title() + str(number)
    words[0] = words[0].title()
    return f"{' '.join(words)} {number}."


def _case(draw: random.Random, text: str) -> str:
    return draw.choice((str.upper, str.lower, str.title, str.swapcase))(text)


def _space(draw: random.Random, text: str) -> str:
    spaced = "".join(draw.choice(SPACES) if c == " " else c for c in text)
    return draw.choice((" ", "", "\u3000")) + spaced + draw.choice((" ", "  "))


def _width(draw: random.Random, text: str) -> str:
    return "".join(chr(ord(c) + 0xFEE0) if c.isascii() and c.isalnum() else c for c in text)


def _misspelled(draw: random.Random, label: str) -> str:
    at = draw.randrange(1, len(label) - 1)
    kind = draw.choice(("swap", "drop", "double", "replace", "insert", "case", "space"))
    letter = draw.choice(string.ascii_lowercase)
    return {
        "swap": label[: at - 1] + label[at] + label[at - 1] + label[at + 1 :],
        "drop": label[:at] + label[at + 1 :],
        "double": label[:at] + label[at] + label[at:],
        "replace": label[:at] + letter + label[at + 1 :],
        "insert": label[:at] + letter + label[at:],
        "case": draw.choice((label.upper(), label.title())),
        "space": draw.choice((f" {label}", f"{label} ")),
    }[kind]
