"""K-BERT: facts of a knowledge graph as branches of the passages that a model reads.

Liu et al. 2020 (AAAI, arXiv:1909.07606). A branch, predicate and object of a subject that the text
names, stands behind that subject. Soft positions count on as if no other branch were there, and a
branch sees itself and its subject alone, which sees it: knowledge reaches the rest of the text
through the subject.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import Field

from bertsmith.config import Settings, validated
from bertsmith.errors import FolderError
from bertsmith.folders.extras import KNOWLEDGE as FILE
from bertsmith.labeled.example import Example
from bertsmith.labeled.triples import SubjectPlace, Triples, triples_of
from bertsmith.tasks.feature import Feature
from bertsmith.text.encoding import Encoding, FieldEncoder, Ints

KEY = "knowledge"


class BranchSettings(Settings):
    """At most `branches` facts per subject of a text, in the order of the graph's file."""

    branches: Annotated[int, Field(gt=0)] = 2
    match_case: bool = False  # whether upper and lower case differ in names of subjects


@dataclass(slots=True, kw_only=True)
class BranchCounts:
    """What the graph gave to some rows; `no_room` branches were left out for the text's sake."""

    tokens: int = 0
    branch_tokens: int = 0
    branches: int = 0
    no_room: int = 0
    subjects: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Knowledge:
    """A graph and how it is read into passages."""

    graph: Triples
    settings: BranchSettings

    key: ClassVar[str] = KEY

    @property
    def shape(self) -> None:
        """It adds rows, not columns."""
        return None

    @property
    def source(self) -> str:
        """The graph by its hash: predictions with another one are others."""
        return f" with the graph {self.graph.digest[:12]}"

    @property
    def columns(self) -> tuple[str, ...]:
        """It reads the texts alone."""
        return ()

    def joined(
        self,
        features: Sequence[Feature],
        examples: Sequence[Example],
        tokenizer: FieldEncoder,
        max_length: int,
    ) -> tuple[list[Feature], dict[str, Any]]:
        """The features with the branches of their texts, and what they got.

        A passage has at most `max_length` tokens with its branches, and the text is never cut for
        one: a branch without room is left out.
        """
        counts = BranchCounts()
        pieces = _pieces_of(tokenizer)
        found = [[self.graph.entities(text) for text in one.texts] for one in examples]
        grown = [
            self._grown(feature, found[feature.example], pieces, max_length, counts)
            for feature in features
        ]
        return grown, self._coverage(grown, len(examples), counts)

    def _coverage(
        self, grown: Sequence[Feature], rows: int, counts: BranchCounts
    ) -> dict[str, Any]:
        return {
            "rows": rows,
            "rows_with_branch": len({one.example for one in grown if one.visible is not None}),
            "tokens": counts.tokens,
            "branch_tokens": counts.branch_tokens,
            "branches": counts.branches,
            "no_room": counts.no_room,
            "subjects_met": len(counts.subjects),
            "subjects": self.graph.subjects,
            "triples": len(self.graph),
            "repeated_triples": self.graph.repeated,
        }

    def to_json(self) -> dict[str, Any]:
        """What bertsmith.json holds of it."""
        return {**self.settings.model_dump(mode="json"), "digest": self.graph.digest}

    def files(self) -> dict[str, Any]:
        """The graph, by the name of its file in a model folder."""
        return {FILE: {"triples": [list(one) for one in self.graph.facts]}}

    @classmethod
    def from_json(cls, section: Mapping[str, Any], stored: Any, place: str) -> Knowledge:
        """From a model folder; a graph that is not the trained one is refused."""
        settings = validated(
            BranchSettings,
            {name: value for name, value in section.items() if name != "digest"},
            f"{place}, knowledge of the task in bertsmith.json",
        )
        facts = stored.get("triples") if isinstance(stored, dict) else None
        if not isinstance(facts, list) or not all(
            isinstance(one, list) and len(one) == 3 and all(isinstance(c, str) for c in one)
            for one in facts
        ):
            raise FolderError(f"{place}/{FILE}: triples must be a list of three strings each")
        graph = triples_of([(s, p, o) for s, p, o in facts], match_case=settings.match_case)
        if graph.digest != section.get("digest"):
            raise FolderError(
                f"{place}/{FILE} is not the graph that the model was trained with: restore the "
                "file, or train with the other graph (`bertsmith finetune DATA --knowledge FILE`)"
            )
        return cls(graph=graph, settings=settings)

    def with_graph(self, graph: Triples) -> Knowledge:
        """The same reading of another graph."""
        return replace(self, graph=graph)

    def _grown(
        self,
        feature: Feature,
        found: Sequence[Sequence[SubjectPlace]],
        pieces: Callable[[str], Ints],
        max_length: int,
        counts: BranchCounts,
    ) -> Feature:
        encoding = feature.encoding
        places = _places(encoding, found)
        counts.tokens += len(encoding)
        counts.subjects.update(entity.subject for entity, _ in places)
        chosen: dict[int, list[Ints]] = {}
        room = max_length - len(encoding)
        for rank in range(self.settings.branches):  # the first fact of each subject comes first
            for place, (entity, rows) in enumerate(places):
                facts = self.graph.of(entity.subject)
                if rank >= len(facts):
                    continue
                ids = pieces(" ".join(facts[rank]))
                if not len(ids):
                    continue
                if len(ids) > room or int(rows[-1]) + len(ids) >= max_length:
                    counts.no_room += 1
                    continue
                room -= len(ids)
                chosen.setdefault(place, []).append(ids)
                counts.branches += 1
                counts.branch_tokens += len(ids)
        if not chosen:
            return feature
        return grow(feature, {tuple(places[at][1]): ids for at, ids in chosen.items()})


def grow(feature: Feature, branches: Mapping[tuple[int, ...], Sequence[Ints]]) -> Feature:
    """The feature with branches: token ids by the rows (in order) of the subject they belong to."""
    encoding = feature.encoding
    size = len(encoding)
    order: list[int] = []  # the row of the trunk, -1 for one of a branch
    ids: list[int] = []
    positions: list[int] = []
    segments: list[int] = []
    groups: list[tuple[tuple[int, ...], range]] = []
    behind = {rows[-1]: rows for rows in branches}
    for row in range(size):
        order.append(row)
        ids.append(int(encoding.ids[row]))
        positions.append(row)
        segments.append(int(encoding.segments[row]))
        for branch in branches[behind[row]] if row in behind else ():
            groups.append((behind[row], range(len(order), len(order) + len(branch))))
            order += [-1] * len(branch)
            ids += branch.tolist()
            positions += range(row + 1, row + 1 + len(branch))
            segments += [int(encoding.segments[row])] * len(branch)
    trunk = np.array(order) >= 0
    place = np.flatnonzero(trunk)  # where each row of the trunk stands now
    visible = trunk[:, None] & trunk[None, :]
    for rows, added in groups:
        own = np.array([*place[list(rows)], *added])
        inside = np.array(added)
        visible[np.ix_(own, inside)] = True
        visible[np.ix_(inside, own)] = True
    return replace(
        feature,
        encoding=_with_rows(encoding, trunk, ids, segments),
        at=None if feature.at is None else place[feature.at].astype(np.int32),
        channels={
            name: _spread(part, trunk, place, groups) for name, part in feature.channels.items()
        },
        positions=np.array(positions, dtype=np.int32),
        visible=visible,
    )


def _with_rows(
    encoding: Encoding, trunk: np.ndarray, ids: Sequence[int], segments: Sequence[int]
) -> Encoding:
    """Rows of branches belong to no field and no word."""
    words = np.full(len(trunk), -1, dtype=np.int32)
    fields = np.full(len(trunk), -1, dtype=np.int32)
    offsets = np.zeros((len(trunk), 2), dtype=np.int32)
    words[trunk], fields[trunk] = encoding.words, encoding.fields
    offsets[trunk] = encoding.offsets
    return replace(
        encoding,
        ids=np.array(ids, dtype=np.int32),
        words=words,
        offsets=offsets,
        segments=np.array(segments, dtype=np.int32),
        fields=fields,
    )


def _spread(
    part: Ints,
    trunk: np.ndarray,
    place: np.ndarray,
    groups: Sequence[tuple[tuple[int, ...], range]],
) -> Ints:
    """A channel (L, ...) of the trunk for all rows: a branch has that of its subject's last row."""
    whole = np.zeros((len(trunk), *part.shape[1:]), dtype=part.dtype)
    whole[place] = part
    for rows, branch in groups:
        whole[list(branch)] = part[rows[-1]]
    return whole


def _places(
    encoding: Encoding, found: Sequence[Sequence[SubjectPlace]]
) -> list[tuple[SubjectPlace, np.ndarray]]:
    """The entities that stand in a passage as a whole, each with its rows."""
    places = []
    for number, entities in enumerate(found):
        rows = np.flatnonzero(encoding.fields == number)
        if not len(rows) or not entities:
            continue
        starts, ends = encoding.offsets[rows].T
        for entity in entities:
            touched = (starts < entity.end) & (ends > entity.start)
            inside = rows[touched]
            if not len(inside) or inside[-1] - inside[0] + 1 != len(inside):
                continue
            if starts[touched].min() > entity.start or ends[touched].max() < entity.end:
                continue  # a part of it was cut, or is in another window
            places.append((entity, inside))
    return places


def _pieces_of(tokenizer: FieldEncoder) -> Callable[[str], Ints]:
    """Token ids of a fact without special tokens, each computed once."""
    known: dict[str, Ints] = {}

    def pieces(text: str) -> Ints:
        if text not in known:
            encoding = tokenizer.encode(text)
            known[text] = encoding.ids[encoding.fields >= 0]
        return known[text]

    return pieces
