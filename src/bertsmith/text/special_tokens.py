"""Control tokens ([CLS], [SEP] ...): the token of a vocabulary for each role."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

ROLES = ("pad", "unk", "cls", "sep", "mask", "bos", "eos")

# The names in published models, most common first; used only when no file names the token.
USUAL_NAMES: dict[str, tuple[str, ...]] = {
    "pad": ("[PAD]", "<pad>"),
    "unk": ("[UNK]", "<unk>"),
    "cls": ("[CLS]", "<s>"),
    "sep": ("[SEP]", "</s>"),
    "mask": ("[MASK]", "<mask>"),
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
