"""Files of the SIGHAN bake-offs: essays with marked mistakes, and test input with its truth."""

from __future__ import annotations

import re
from pathlib import Path

from bertsmith.errors import InputFileError
from bertsmith.files.lines import Lines
from bertsmith.labeled.pairs.pairs import SentenceData
from bertsmith.wording import counted

_PASSAGE = re.compile(r'<PASSAGE id="([^"]+)">(.*)</PASSAGE>')
_MISTAKE = re.compile(r'<MISTAKE id="([^"]+)" location="(\d+)">')
_WRONG = re.compile(r"<WRONG>(.*)</WRONG>")
_RIGHT = re.compile(r"<CORRECTION>(.*)</CORRECTION>")
_INPUT = re.compile(r"\((?:pid|id|NID)=([^)]+)\)\s*(.*)", re.IGNORECASE)


def reads_sighan(path: Path) -> bool:
    """Whether a file is one of essays or of test input, by its first line with text."""
    lines = Lines(path)
    try:
        for line in lines:
            if not isinstance(line, str):
                return False
            if line.strip():
                return line.lstrip("\ufeff").startswith("<ESSAY") or bool(_INPUT.match(line))
    finally:
        lines.close()
    return False


def read_sighan(path: Path) -> SentenceData:
    """Wrong and right texts of a file; a text without mistakes is right as it is."""
    lines, broken = _lines(path)
    first = next((line for _, line in lines if line.strip()), "")
    if first.lstrip("\ufeff").startswith("<ESSAY"):
        return _essays(path, lines, broken)
    _whole(broken)
    return _test(path, lines)


def _lines(path: Path) -> tuple[list[tuple[int, str]], list[InputFileError]]:
    """The lines with their numbers, and those that cannot be decoded."""
    lines = Lines(path)
    found: list[tuple[int, str]] = []
    broken: list[InputFileError] = []
    try:
        for line in lines:
            if isinstance(line, str):
                found.append((lines.number, line))
            else:
                broken.append(line.error(lines.name, lines.number))
    finally:
        lines.close()
    return found, broken


def _whole(broken: list[InputFileError]) -> None:
    """Refuse a file of results with a broken line: every row of it counts."""
    if broken:
        raise broken[0]


def _essays(path: Path, lines: list[tuple[int, str]], broken: list[InputFileError]) -> SentenceData:
    """The passages; one on a line that cannot be decoded is left out with its mistakes."""
    texts: dict[str, tuple[int, str, str]] = {}  # id -> line, wrong, right
    at: tuple[int, str, int] | None = None
    wrong, skipped, placed = "", 0, 0
    strays: list[tuple[int, str]] = []  # mistakes whose passage is not there: published files do so
    for number, line in lines:
        if passage := _PASSAGE.search(line):
            texts[passage[1]] = (number, passage[2], passage[2])
        elif mistake := _MISTAKE.search(line):
            at = (number, mistake[1], int(mistake[2]))
        elif found := _WRONG.search(line):
            wrong = found[1]
        elif (found := _RIGHT.search(line)) and at is not None:
            if at[1] not in texts:
                strays.append(at[:2])
                continue
            placed += 1
            place, whole, right = texts[at[1]]
            mended = _mended(whole, right, at[2], wrong, found[1])
            skipped += mended is None
            texts[at[1]] = (place, whole, right if mended is None else mended)
    if strays and not placed:
        line_number, name = strays[0]
        raise InputFileError(
            f"{path}, line {line_number}: no passage above has the id {name!r} of this mistake, "
            "nor has any other mistake its passage; give the essays with their passages"
        )
    notes = []
    if broken:
        notes.append(f"{counted(len(broken), 'line')} left out that cannot be decoded: {broken[0]}")
    if strays:
        line_number, name = strays[0]
        notes.append(
            f"{path.name}: {counted(len(strays), 'mistake')} without a passage of that id left out "
            f"(first: line {line_number}, {name})"
        )
    if skipped:
        notes.append(
            f"{path.name}: {counted(skipped, 'mistake')} whose marked text is not at its location "
            "left uncorrected"
        )
    return _data(path, list(texts.values()), tuple(notes))


def _mended(whole: str, right: str, location: int, wrong: str, correction: str) -> str | None:
    """The right text with one more mistake corrected; None if the marks do not fit the text."""
    if len(wrong) != len(correction):
        return None
    for shift in range(len(wrong)):
        start = location - 1 - shift
        fits = start >= 0 and whole[start : start + len(wrong)] == wrong
        if fits and wrong[shift] != correction[shift]:
            return right[:start] + correction + right[start + len(wrong) :]
    return None


def _test(path: Path, lines: list[tuple[int, str]]) -> SentenceData:
    truth_path = path.with_name(path.name.replace("Input", "Truth"))
    if truth_path == path or not truth_path.is_file():
        raise InputFileError(
            f"{path}, line 1: test input has no right texts by itself, and there is no file with "
            "Truth instead of Input in its name next to it"
        )
    truth = read_truth(truth_path)
    rows = []
    for number, line in lines:
        found = _INPUT.match(line.lstrip("\ufeff"))
        if found is None:
            if line.strip():
                raise InputFileError(f"{path}, line {number}: needs (pid=ID), a tab and a text")
            continue
        if found[1] not in truth:
            raise InputFileError(
                f"{path}, line {number}: {truth_path.name} has no line for {found[1]!r}"
            )
        right = list(found[2])
        for place, character in truth[found[1]].items():
            if not 0 <= place < len(right):
                raise InputFileError(
                    f"{truth_path}: place {place + 1} of {found[1]!r} is outside of its text of "
                    f"{len(right)} characters"
                )
            right[place] = character
        rows.append((number, found[2], "".join(right)))
    return _data(path, rows, ())


def read_truth(path: Path) -> dict[str, dict[int, str]]:
    """Results or truth by id: the right character at each wrong place, counted from 0 here."""
    found: dict[str, dict[int, str]] = {}
    lines, broken = _lines(path)
    _whole(broken)
    for number, line in lines:
        cells = [cell.strip() for cell in line.strip("\ufeff").split(",")]
        if not line.strip():
            continue
        places, characters = cells[1::2], cells[2::2]
        if places == ["0"]:
            found[cells[0]] = {}
            continue
        numbers = [int(one) for one in places if one.isdecimal()]
        if len(numbers) != len(places) or len(places) != len(characters) or not places:
            raise InputFileError(
                f"{path}, line {number}: needs an id, then 0 or pairs of a place and a character"
            )
        found[cells[0]] = dict(zip([one - 1 for one in numbers], characters, strict=True))
    return found


def _data(path: Path, rows: list[tuple[int, str, str]], notes: tuple[str, ...]) -> SentenceData:
    return SentenceData(
        source=str(path),
        kind="pairs",
        why="a file of the SIGHAN bake-offs",
        rows=[(wrong, right) for _, wrong, right in rows],
        lines=[line for line, _, _ in rows],
        notes=notes,
    )
