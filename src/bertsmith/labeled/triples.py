"""A knowledge graph as a file of triples, and the places of its subjects in texts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bertsmith.errors import InputFileError
from bertsmith.files.digest import json_digest
from bertsmith.files.faults import UnreadableLineError
from bertsmith.files.lines import Lines
from bertsmith.wording import shown

FIELDS = ("subject", "predicate", "object")
# A run of letters and digits that are not Chinese, or any other single character.
ATOM = re.compile(
    r"[^\W\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]+|[^\s]", re.UNICODE
)
Triple = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class SubjectPlace:
    """A subject of the graph in a text, by its characters `start` to `end`."""

    start: int
    end: int
    subject: str


@dataclass(frozen=True, slots=True, eq=False)
class Triples:
    """Facts of subjects in the order of their file, each once.

    Subjects are found by longest match, from left to right: of whole words where words are written
    apart, of characters in Chinese. Spaces between the parts of a subject do not matter, and upper
    case only with `match_case`.
    """

    facts: tuple[Triple, ...]
    match_case: bool = False
    repeated: int = 0
    _by_subject: Mapping[str, tuple[tuple[str, str], ...]] = field(init=False)
    _by_first: Mapping[str, Mapping[tuple[str, ...], str]] = field(init=False)

    def __post_init__(self) -> None:
        facts: dict[str, list[tuple[str, str]]] = {}
        first: dict[str, dict[tuple[str, ...], str]] = {}
        keys: dict[tuple[str, ...], str] = {}
        for subject, predicate, thing in self.facts:
            atoms = tuple(atom for atom, _, _ in self._atoms(subject))
            name = keys.setdefault(atoms, subject)  # spellings that match the same text
            facts.setdefault(name, []).append((predicate, thing))
            first.setdefault(atoms[0], {})[atoms] = name
        object.__setattr__(self, "_by_subject", {name: tuple(all_) for name, all_ in facts.items()})
        object.__setattr__(self, "_by_first", first)

    def __len__(self) -> int:
        return len(self.facts)

    @property
    def subjects(self) -> int:
        """How many there are."""
        return len(self._by_subject)

    @property
    def digest(self) -> str:
        """Equal for graphs that give the same branches."""
        return json_digest({"triples": [list(one) for one in self.facts]})

    def of(self, subject: str) -> tuple[tuple[str, str], ...]:
        """Predicate and object of each fact of a subject, in the order of the file."""
        return self._by_subject[subject]

    def entities(self, text: str) -> list[SubjectPlace]:
        """The subjects in a text, from left to right, none inside another."""
        atoms = list(self._atoms(text))
        names = [atom for atom, _, _ in atoms]
        found, at = [], 0
        while at < len(atoms):
            size, subject = self._longest(names, at)
            if size:
                found.append(SubjectPlace(atoms[at][1], atoms[at + size - 1][2], subject))
            at += size or 1
        return found

    def _longest(self, atoms: Sequence[str], at: int) -> tuple[int, str]:
        """Atoms and name of the longest subject that begins there; 0: none does."""
        known = self._by_first.get(atoms[at], {})
        for size in sorted({len(key) for key in known}, reverse=True):
            subject = known.get(tuple(atoms[at : at + size]))
            if subject is not None and at + size <= len(atoms):
                return size, subject
        return 0, ""

    def _atoms(self, text: str) -> Iterator[tuple[str, int, int]]:
        for match in ATOM.finditer(text):
            atom = match[0] if self.match_case else match[0].lower()
            yield atom, match.start(), match.end()


def triples_of(facts: Iterable[Triple], *, match_case: bool = False) -> Triples:
    """The graph of these facts; the same fact counts once."""
    counted = Counter(facts)
    return Triples(tuple(counted), match_case, counted.total() - len(counted))


def read_triples(path: Path, *, match_case: bool = False) -> Triples:
    """Read a file of `subject TAB predicate TAB object` lines; blank lines are skipped."""
    if not path.is_file():
        raise InputFileError(
            f"{path}: there is no such file; a knowledge graph is a file of lines "
            "`subject TAB predicate TAB object`"
        )
    lines = Lines(path)
    facts = []
    for line in lines:
        if isinstance(line, UnreadableLineError):
            raise InputFileError(f"{path}, line {lines.number}: {line}")
        if line.strip():
            facts.append(_fact(line, f"{path}, line {lines.number}"))
    if not facts:
        raise InputFileError(
            f"{path}: there is no triple in it; write `subject TAB predicate TAB object` lines"
        )
    return triples_of(facts, match_case=match_case)


def _fact(line: str, place: str) -> Triple:
    cells = [cell.strip() for cell in line.split("\t")]
    if len(cells) != len(FIELDS):
        raise InputFileError(
            f"{place}: {len(cells)} fields in {shown(line)}; write three, divided by tabs: "
            "subject, predicate, object"
        )
    for name, cell in zip(FIELDS, cells, strict=True):
        if not cell:
            raise InputFileError(
                f"{place}: the {name} is empty in {shown(line)}; fill it in, or remove the line"
            )
    subject, predicate, thing = cells
    return subject, predicate, thing
