"""ARPA files in and out: log10 probabilities by order, as every n-gram toolkit writes them.

Read as kenlm reads them: <unk> may be missing, -99 stands for zero, lines may end in CRLF, files
may be packed. Suffixes that a pruned file lacks are filled in with what backing off gives for them.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bertsmith.classic.ngram.counting import Ints, Numbers
from bertsmith.classic.ngram.estimation import EstimatedOrder
from bertsmith.classic.ngram.model import NgramLm, find_keys
from bertsmith.classic.stream.splitting import BEGIN, END, UNKNOWN
from bertsmith.errors import ConfigError, InputFileError
from bertsmith.files.atomic_file import StagedFile
from bertsmith.files.lines import text_lines

Floats = NDArray[np.float64]
LOG10 = math.log(10)
ZERO = -99.0  # log10 of a probability that is 0
NO_UNKNOWN = -100.0  # kenlm's log10 for a missing <unk>
MOST_ORDERS = 12
BLOCK = 50_000  # n-grams formatted together


@dataclass(slots=True, eq=False)
class _Section:
    """The n-grams of one order as read: words flat, row after row; `line` is that of the first."""

    length: int
    line: int
    words: array[int] = field(default_factory=lambda: array("i"))
    logs: array[float] = field(default_factory=lambda: array("d"))
    backoffs: array[float] = field(default_factory=lambda: array("d"))

    def rows(self) -> Numbers:
        return np.array(self.words, dtype=np.int32).reshape(-1, self.length)


def read_arpa(path: Path) -> tuple[tuple[str, ...], list[EstimatedOrder]]:
    """Words and orders of an ARPA file; a fault is named with its line."""
    reader = _ArpaReader(path)
    counts = reader.header()
    sections = [reader.section(length, count) for length, count in enumerate(counts, start=1)]
    reader.end()
    return reader.words, _orders(path, sections, len(reader.words))


class _ArpaReader:
    """The lines of one file, with their numbers."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.number = 0
        self.words: tuple[str, ...] = ()
        self._ids: dict[str, int] = {}
        self._lines = text_lines(path)

    def fail(self, reason: str, line: int | None = None) -> InputFileError:
        return InputFileError(f"{self.path}, line {line or self.number}: {reason}")

    def next(self, wanted: str) -> str:
        for line in self._lines:
            self.number += 1
            return line
        raise self.fail(f"the file ends where {wanted} should come; it is cut off: copy it anew")

    def header(self) -> list[int]:
        line = ""
        while line.strip() != "\\data\\":
            line = self.next("\\data\\")
            if line.strip() and line.strip() != "\\data\\" and self.number > 1000:
                raise self.fail("no \\data\\ in the first lines, so this is no ARPA file")
        counts: list[int] = []
        while (line := self.next("a count, as ngram 1=100").strip()).startswith("ngram"):
            order, equals, count = line.removeprefix("ngram").partition("=")
            if not equals or order.strip() != str(len(counts) + 1) or not count.strip().isdigit():
                raise self.fail(f"{line!r} should be: ngram {len(counts) + 1}=COUNT")
            counts.append(int(count))
        if not counts or len(counts) > MOST_ORDERS:
            raise self.fail(f"there are {len(counts)} counts of n-grams; 1 to {MOST_ORDERS} can be")
        if line:
            raise self.fail(f"{line!r} stands among the counts; they end with a blank line")
        return counts

    def section(self, length: int, count: int) -> _Section:
        line = self.next(f"\\{length}-grams:").strip()
        while not line:
            line = self.next(f"\\{length}-grams:").strip()
        if line != f"\\{length}-grams:":
            raise self.fail(f"{line[:60]!r} should be \\{length}-grams:")
        section = _Section(length, self.number + 1)
        names: list[str] = []
        while (line := self.next("the next n-gram")).strip():
            if line.startswith("\\") and "\t" not in line:
                raise self.fail(f"{line[:60]!r}: a blank line should come before it")
            self._row(section, line, names)
        if len(section.logs) != count:
            raise self.fail(
                f"there are {len(section.logs):,} {length}-grams and the header says {count:,}; "
                "the file is damaged or its header was not updated"
            )
        if length == 1:
            self._name(section, names)
        return section

    def _row(self, section: _Section, line: str, names: list[str]) -> None:
        fields = line.split("\t")
        if len(fields) == 1:  # blanks everywhere
            parts = line.split()
            fields = [parts[0], " ".join(parts[1 : section.length + 1])]
            fields += parts[section.length + 1 :]
        elif len(fields) > 3:  # tabs between words, too
            parts = fields
            fields = [parts[0], " ".join(parts[1 : section.length + 1])]
            fields += parts[section.length + 1 :]
        words = fields[1].split(" ") if len(fields) > 1 else []
        if len(words) != section.length or len(fields) > 3 or "" in words:
            raise self.fail(f"{line[:60]!r} is not: log probability, {section.length} words")
        log = self._number(fields[0], "log probability")
        if log > 0:
            raise self.fail(f"the log probability {log} is above 0; a probability is at most 1")
        section.logs.append(log)
        section.backoffs.append(self._number(fields[2], "backoff") if len(fields) > 2 else 0.0)
        if section.length == 1:
            names.append(words[0])
            return
        try:
            section.words.extend([self._ids[word] for word in words])
        except KeyError as error:
            raise self.fail(f"the word {error.args[0]!r} is not among the 1-grams") from None

    def _number(self, text: str, what: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if math.isnan(value) or value == math.inf:
            raise self.fail(f"{text[:40]!r} is no {what}")
        return max(value, ZERO - 1)

    def _name(self, section: _Section, names: list[str]) -> None:
        """Number the words of the 1-grams: <unk> first, then as they come, then </s> and <s>."""
        seen: dict[str, int] = {}
        for place, name in enumerate(names):
            if seen.setdefault(name, place) != place:
                raise self.fail(f"the word {name!r} stands twice", section.line + place)
        for name in (BEGIN, END):
            if name not in seen:
                raise self.fail(f"the 1-grams lack {name}, so lines have no beginning or end")
        plain = [name for name in names if name not in (UNKNOWN, BEGIN, END)]
        self.words = (UNKNOWN, *plain)
        self._ids = {name: number for number, name in enumerate((*self.words, END, BEGIN))}
        if UNKNOWN not in seen:
            section.logs.append(NO_UNKNOWN)
            section.backoffs.append(0.0)
            names.append(UNKNOWN)
        section.words.extend([self._ids[name] for name in names])

    def end(self) -> None:
        line = self.next("\\end\\").strip()
        while not line:
            line = self.next("\\end\\").strip()
        if line != "\\end\\":
            raise self.fail(f"{line[:60]!r} should be \\end\\")


def _orders(path: Path, sections: list[_Section], words: int) -> list[EstimatedOrder]:
    """The sections as sorted arrays; where suffixes are missing they are added first."""
    rows = [section.rows() for section in sections]
    logs = [np.array(section.logs, dtype=np.float64) for section in sections]
    backoffs = [np.array(section.backoffs, dtype=np.float64) for section in sections]
    order = np.argsort(rows[0][:, 0])
    rows[0], logs[0], backoffs[0] = rows[0][order], logs[0][order], backoffs[0][order]
    while True:
        keys: list[Ints] = [np.arange(words + 2, dtype=np.int64)]
        missing: Numbers | None = None
        for length in range(2, len(rows) + 1):
            table = rows[length - 1]
            suffix = ngram_numbers(keys, table[:, 1:])
            if (suffix < 0).any():
                missing = np.unique(table[suffix < 0, 1:], axis=0)
                break
            context = ngram_numbers(keys, table[:, :-1])
            if (context < 0).any():
                place = int(np.flatnonzero(context < 0)[0])
                raise InputFileError(
                    f"{path}, line {sections[length - 1].line + place}: the context of this "
                    f"{length}-gram is not among the {length - 1}-grams, so its probability "
                    "cannot be reached; the file is damaged"
                )
            wanted = table[:, 0].astype(np.int64) * len(keys[-1]) + suffix
            order = np.argsort(wanted, kind="stable")
            rows[length - 1] = table[order]
            logs[length - 1], backoffs[length - 1] = (
                logs[length - 1][order],
                backoffs[length - 1][order],
            )
            wanted = wanted[order]
            if (twice := np.flatnonzero(wanted[1:] == wanted[:-1])).size:
                place = int(order[twice[0] + 1])
                raise InputFileError(
                    f"{path}, line {sections[length - 1].line + place}: this {length}-gram stands "
                    "twice"
                )
            keys.append(wanted)
        if missing is None:
            return _estimated(keys, logs, backoffs)
        at = missing.shape[1] - 1
        rows[at] = np.concatenate([rows[at], missing])
        filled = _backed_off(keys, logs, backoffs, missing)
        logs[at] = np.concatenate([logs[at], filled])
        backoffs[at] = np.concatenate([backoffs[at], np.zeros(len(missing))])


def ngram_numbers(keys: list[Ints], rows: NDArray[np.integer]) -> Numbers:
    """The number of each n-gram (R, n) of words, -1 where it is not known."""
    numbers = rows[:, -1].astype(np.int32)
    for length in range(2, rows.shape[1] + 1):
        wanted = rows[:, -length].astype(np.int64) * len(keys[length - 2]) + numbers
        found = find_keys(keys[length - 1], wanted)
        numbers = np.where(numbers < 0, -1, found).astype(np.int32)
    return numbers


def _backed_off(
    keys: list[Ints], logs: list[Floats], backoffs: list[Floats], rows: Numbers
) -> Floats:
    """log10 of n-grams that are not in the file: backoff of the context and the shorter n-gram."""
    if rows.shape[1] == 1:
        return logs[0][rows[:, 0]]
    own = ngram_numbers(keys[: rows.shape[1] - 1], rows[:, 1:])
    shorter = np.where(own >= 0, logs[rows.shape[1] - 2][np.maximum(own, 0)], 0.0)
    if (own < 0).any():
        shorter[own < 0] = _backed_off(keys, logs, backoffs, rows[own < 0, 1:])
    context = ngram_numbers(keys[: rows.shape[1] - 1], rows[:, :-1])
    weight = backoffs[rows.shape[1] - 2][np.maximum(context, 0)]
    return shorter + np.where(context >= 0, weight, 0.0)


def _estimated(
    keys: list[Ints], logs: list[Floats], backoffs: list[Floats]
) -> list[EstimatedOrder]:
    last = len(keys) - 1
    return [
        EstimatedOrder(
            keys[n], logs[n] * LOG10, None if n == last else backoffs[n] * LOG10, None, len(keys[n])
        )
        for n in range(len(keys))
    ]


def write_arpa(model: NgramLm, path: Path) -> None:
    """Write an ARPA file, whole or not at all."""
    for word in model.words:
        if len(word.split()) != 1:
            raise ConfigError(f"the word {word!r} has white space inside, which ARPA cannot hold")
    names = np.array([*model.words, END, BEGIN], dtype=object)
    with StagedFile(path) as file:
        head = [f"ngram {n}={len(order.keys)}" for n, order in enumerate(model.orders, start=1)]
        file.write(("\\data\\\n" + "\n".join(head) + "\n").encode())
        table = np.arange(len(names), dtype=np.int32)[:, None]
        for length, order in enumerate(model.orders, start=1):
            if length > 1:
                left, suffix = np.divmod(np.asarray(order.keys), max(1, len(table)))
                table = np.concatenate([left[:, None].astype(np.int32), table[suffix]], axis=1)
            file.write(f"\n\\{length}-grams:\n".encode())
            for at in range(0, len(table), BLOCK):
                part = slice(at, at + BLOCK)
                file.write(_text(model, length, names[table[part]], part).encode())
        file.write(b"\n\\end\\\n")


def _text(model: NgramLm, length: int, names: NDArray[np.object_], part: slice) -> str:
    """Lines of n-grams; nine digits bring every float32 back."""
    order = model.orders[length - 1]
    logs = np.maximum(np.asarray(order.logs[part]) / LOG10, ZERO)
    logs = np.minimum(logs, 0.0)
    rows: Iterator[list[str]] = iter(names.tolist())
    if order.backoffs is None:
        return "".join(
            f"{log:.9g}\t{' '.join(row)}\n" for log, row in zip(logs.tolist(), rows, strict=True)
        )
    weights = np.maximum(np.asarray(order.backoffs[part]) / LOG10, ZERO).tolist()
    return "".join(
        f"{log:.9g}\t{' '.join(row)}\t{weight:.9g}\n"
        for log, row, weight in zip(logs.tolist(), rows, weights, strict=True)
    )
