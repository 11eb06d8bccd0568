"""Special tokens ([CLS], [SEP] ...): the token of each role, and where a template places them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bertsmith.errors import FolderError

ROLES = ("pad", "unk", "cls", "sep", "mask", "bos", "eos")

# The names in published models, most common first; used only when no file names the token.
USUAL_NAMES: dict[str, tuple[str, ...]] = {
    "pad": ("[PAD]", "<pad>"),
    "unk": ("[UNK]", "<unk>"),
    "cls": ("[CLS]", "<cls>", "<s>"),
    "sep": ("[SEP]", "<sep>", "</s>"),
    "mask": ("[MASK]", "<mask>"),
    "bos": ("<|endoftext|>",),  # GPT-2, whose folders name neither
    "eos": ("<|endoftext|>",),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SpecialTokens:
    """Ids of the control tokens; None where a vocabulary has none."""

    pad: int | None = None
    unk: int | None = None
    cls: int | None = None
    sep: int | None = None
    mask: int | None = None


def find_roles(
    has: Callable[[str], bool], *tables: Mapping[str, Any], unk: str | None = None
) -> dict[str, str]:
    """The token of each role: from the tables (`cls_token` ...) in order, else by its usual name.

    Only tokens that the vocabulary `has` count; `unk` is the model's own unknown token.
    """
    roles: dict[str, str] = {}
    for role in ROLES:
        named = [_content(table.get(f"{role}_token")) for table in tables]
        if role == "unk" and unk is not None:
            named.insert(0, unk)
        for name in (*named, *USUAL_NAMES.get(role, ())):
            if name is not None and has(name):
                roles[role] = name
                break
    return roles


def _content(entry: object) -> str | None:
    """The string of a token entry, which is a string or a table with its content."""
    if isinstance(entry, Mapping):
        entry = entry.get("content")
    return entry if isinstance(entry, str) else None


Marks = tuple[tuple[int, int], ...]  # (id, segment) of each special token


@dataclass(frozen=True, slots=True)
class Frame:
    """Special tokens in `gaps` before, between and after the fields; `segments` of the fields."""

    gaps: tuple[Marks, ...]
    segments: tuple[int, ...]

    @property
    def specials(self) -> int:
        """Number of special tokens in all."""
        return sum(len(gap) for gap in self.gaps)


@dataclass(frozen=True, slots=True)
class Template:
    """The frames of one field and of two; more fields repeat the tokens between the two."""

    single: Frame
    pair: Frame

    def frame(self, fields: int) -> Frame:
        """The frame of any number of fields."""
        if fields == 1:
            return self.single
        first, between, last = self.pair.gaps
        one, other = self.pair.segments
        later = tuple((mark, other) for mark, _ in between)
        return Frame(
            (first, between, *[later] * (fields - 2), last), (one, *[other] * (fields - 1))
        )

    @property
    def ids(self) -> frozenset[int]:
        """Ids of every special token the template places."""
        gaps = (*self.single.gaps, *self.pair.gaps)
        return frozenset(mark[0] for gap in gaps for mark in gap)


BARE = Template(Frame(((), ()), (0,)), Frame(((), (), ()), (0, 1)))


def read_template(processor: dict[str, Any] | None) -> Template:
    """The template of a tokenizer.json post-processor; bare text when it adds nothing."""
    if processor is None:
        return BARE
    if not isinstance(processor, dict):
        raise FolderError(
            f"the post_processor of tokenizer.json is {processor!r:.40}; it must be an object"
        )
    kind = processor.get("type")
    try:
        if kind == "TemplateProcessing":
            marks = processor["special_tokens"]
            return Template(
                _frame(processor["single"], marks, "A"), _frame(processor["pair"], marks, "AB")
            )
        if kind in ("BertProcessing", "RobertaProcessing"):
            return _classic(int(processor["cls"][1]), int(processor["sep"][1]), kind)
        if kind == "Sequence":
            templates = [read_template(part) for part in processor["processors"]]
            return next((template for template in templates if template is not BARE), BARE)
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise FolderError(
            f"the post_processor of tokenizer.json is malformed: {error!r}"
        ) from error
    if kind == "ByteLevel":
        return BARE
    raise FolderError(f"tokenizer.json has a post_processor of unknown type {kind!r}")


def placed_tokens(processor: Mapping[str, Any] | None) -> Iterator[tuple[str, int]]:
    """Every special token that a valid post-processor places, and the id it places for it."""
    for name in ("cls", "sep"):
        if processor and name in processor:
            yield str(processor[name][0]), int(processor[name][1])
    for entry in (processor or {}).get("special_tokens", {}).values():
        for token, number in zip(entry.get("tokens") or (), entry["ids"], strict=False):
            yield str(token), int(number)
    for part in (processor or {}).get("processors", ()):
        yield from placed_tokens(part)


def template_state(
    cls: tuple[str, int], sep: tuple[str, int], *, cls_last: bool = False
) -> dict[str, Any]:
    """BERT's template, `[CLS] A [SEP] B [SEP]`, as a tokenizer.json tree.

    With `cls_last` XLNet's, `A <sep> B <sep> <cls>`, whose <cls> is of segment 2.
    """

    def mark(name: str, segment: int) -> dict[str, Any]:
        return {"SpecialToken": {"id": name, "type_id": segment}}

    def text(name: str, segment: int) -> dict[str, Any]:
        return {"Sequence": {"id": name, "type_id": segment}}

    first, last = ([], [mark(cls[0], 2)]) if cls_last else ([mark(cls[0], 0)], [])
    single = [*first, text("A", 0), mark(sep[0], 0)]
    return {
        "type": "TemplateProcessing",
        "single": [*single, *last],
        "pair": [*single, text("B", 1), mark(sep[0], 1), *last],
        "special_tokens": {
            name: {"id": name, "ids": [number], "tokens": [name]} for name, number in (cls, sep)
        },
    }


def _classic(cls: int, sep: int, kind: str) -> Template:
    """BERT: `cls A sep B sep`; RoBERTa: `cls A sep sep B sep` in one segment."""
    single = Frame((((cls, 0),), ((sep, 0),)), (0,))
    if kind == "BertProcessing":
        return Template(single, Frame((((cls, 0),), ((sep, 0),), ((sep, 1),)), (0, 1)))
    return Template(single, Frame((((cls, 0),), ((sep, 0), (sep, 0)), ((sep, 0),)), (0, 0)))


def _frame(steps: Sequence[dict[str, Any]], marks: dict[str, Any], fields: str) -> Frame:
    gaps: list[list[tuple[int, int]]] = [[]]
    segments: list[int] = []
    names = ""
    for step in steps:
        if "Sequence" in step:
            names += step["Sequence"]["id"]
            segments.append(int(step["Sequence"]["type_id"]))
            gaps.append([])
        else:
            special = step["SpecialToken"]
            ids = marks[special["id"]]["ids"]
            gaps[-1] += [(int(i), int(special["type_id"])) for i in ids]
    if names != fields:
        raise FolderError(
            f"the template of tokenizer.json takes the fields {names or 'none'}; expected {fields}"
        )
    return Frame(tuple(tuple(gap) for gap in gaps), tuple(segments))
