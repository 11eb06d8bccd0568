"""What a list of entities holds and what the texts mention of it, in lines for people."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from bertsmith.corpus.rows import Flags
from bertsmith.objectives.entities.mentions import Entities
from bertsmith.objectives.entities.replaced import ReplacedTexts
from bertsmith.wording import counted

SHOWN = 5  # names in a line


def entity_remarks(entities: Entities, known: Flags | None) -> list[str]:
    """The entities of the list that are used; `known` (N,) are those with a given vector."""
    number = len(entities.names)
    remarks = [
        f"entities: {counted(number, 'entity', 'entities')} of "
        f"{counted(len(entities.type_names), 'type')}"
    ]
    left_out = {
        "repeated in the list": entities.repeated,
        "left out, with an unknown token in this vocabulary": entities.unwritable,
        "left out, with the tokens of an earlier entity": entities.alike,
        "types of one entity, never replaced": entities.lone_types,
    }
    remarks += [f"entities: {_named(names)} {what}" for what, names in left_out.items() if names]
    if known is not None and not known.all():
        missing = [entities.names[place] for place in np.flatnonzero(~known).tolist()]
        remarks.append(f"entities: {_named(missing)} without a vector, not aligned")
    return remarks


def text_remarks(entities: Entities, found: Iterable[ReplacedTexts]) -> list[str]:
    """Mentions in texts and what became of them."""
    texts = mentions = replaced = lacking = lone = 0
    met = np.zeros(len(entities.names), dtype=bool)
    for one in found:
        texts += len(one.rows.lengths)
        mentions += len(one.replaced)
        replaced += int(one.replaced.sum())
        lacking += int(one.lacked_room.sum())
        lone += int((~entities.replaceable[one.mentions.entities]).sum())
        met[one.originals] = True
    where = f"in the first {counted(texts, 'text')}"
    if not mentions:
        return [f"entities: none of them is mentioned {where}; is the list for this corpus?"]
    share = f"{replaced / mentions:.1%}"
    remarks = [
        f"entities: {counted(mentions, 'mention')} {where}, of {met.sum():,} entities; "
        f"{replaced:,} replaced ({share})"
    ]
    if lone:
        remarks.append(f"entities: {counted(lone, 'mention')} of types of one entity, not replaced")
    if lacking:
        remarks.append(
            f"entities: {counted(lacking, 'mention')} not replaced because no entity of the type "
            "fits the longest text"
        )
    return remarks


def _named(names: Sequence[str]) -> str:
    """How many, and the first of them."""
    more = ", ..." if len(names) > SHOWN else ""
    return f"{len(names):,} ({', '.join(names[:SHOWN])}{more})"
