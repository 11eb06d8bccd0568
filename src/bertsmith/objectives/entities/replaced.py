"""Mentions replaced by other entities of their type, so that a model learns which are true.

Xiong et al. 2019 (WKLM, arXiv:1912.09637).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from bertsmith.corpus.rows import Flags, Longs, RowsBatch, spread
from bertsmith.objectives.entities.mentions import Entities, Mentions
from bertsmith.objectives.noise.noised import Noised
from bertsmith.wording import counted

REPLACE, DRAW = "replaced entity", "drawn entity"  # streams of random numbers
SHOWN = 5  # names in a line


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReplacedTexts:
    """Texts after replacement, and the same mentions in them.

    `originals` (M,) are the entities before; `replaced` (M,) says which mentions are of another one
    now; `lacked_room` (M,) which stay as they were because nothing of their type fits the longest
    text.
    """

    rows: RowsBatch
    mentions: Mentions
    originals: Longs
    replaced: Flags
    lacked_room: Flags


def choose_mentions(rows: RowsBatch, mentions: Mentions, allowed: Flags, rate: float) -> Flags:
    """(M,) the mentions to replace: each of the `allowed` (M,) with the chance `rate`, up to .5.

    No two neighbors of one text: after one that is not replaced the chance is higher by what it is
    0 after one that is, so that it is `rate` for each.
    """
    texts = rows.texts[mentions.starts]
    number = np.arange(len(texts))
    follows = np.zeros(len(texts), dtype=bool)  # the mention before it may be replaced
    follows[1:] = (texts[1:] == texts[:-1]) & allowed[:-1]
    chance = np.where(follows, rate / (1.0 - rate), rate)
    hit = allowed & (rows.uniforms(REPLACE, mentions.starts) < chance)
    opens = hit.copy()
    opens[1:] &= ~(follows[1:] & hit[:-1])
    first = np.maximum.accumulate(np.where(opens, number, 0))
    # Of hits in a row every second one counts: the first, the third, ...
    chosen: Flags = hit & ((number - first) % 2 == 0)
    return chosen


def draw_others(
    rows: RowsBatch, mentions: Mentions, chosen: Flags, entities: Entities
) -> tuple[Longs, Flags]:
    """(M,) the entity that each mention is to name, and (M,) the chosen ones that lack room.

    Texts stay within `rows.longest`: only entities that fit are drawn, from left to right.
    """
    named = mentions.entities.copy()
    lacking = np.zeros(len(named), dtype=bool)
    texts = rows.texts[mentions.starts]
    longest = np.iinfo(np.int64).max // 2 if rows.longest is None else rows.longest
    room = (longest - rows.sizes).tolist()
    draws = rows.uniforms(DRAW, mentions.starts)
    for number in np.flatnonzero(chosen).tolist():
        written = entities.written[int(mentions.forms[number])]
        text, size = int(texts[number]), int(mentions.sizes[number])
        other = written.other(int(named[number]), size + room[text], float(draws[number]))
        if other < 0:
            lacking[number] = True
            continue
        named[number] = other
        room[text] -= int(written.sizes[other]) - size
    return named, lacking


def replace_mentions(rows: RowsBatch, entities: Entities, rate: float) -> ReplacedTexts:
    """Texts with a share of their mentions replaced by others of the same type; 0 replaces none."""
    before = entities.find(rows)
    chosen = choose_mentions(rows, before, entities.replaceable[before.entities], rate)
    named, lacking = draw_others(rows, before, chosen, entities)
    changed = named != before.entities
    sizes = before.sizes.copy()
    of_form = [changed & (before.forms == form) for form in range(len(entities.written))]
    for here, written in zip(of_form, entities.written, strict=True):
        sizes[here] = written.sizes[named[here]]
    counts = np.ones(len(rows.ids), dtype=np.int64)  # rows that each row becomes
    counts[spread(before.starts[changed], before.sizes[changed])] = 0
    counts[before.starts[changed]] = sizes[changed]
    near = np.repeat(np.arange(len(rows.ids)), counts)
    starts = (np.cumsum(counts) - counts)[before.starts]
    ids, new = rows.ids[near], np.zeros(len(near), dtype=bool)
    for here, written in zip(of_form, entities.written, strict=True):
        at = spread(starts[here], sizes[here])
        ids[at] = written.tokens[spread(written.firsts[named[here]], sizes[here])]
        new[at] = True
    lengths = np.bincount(rows.texts[near], minlength=len(rows.lengths))
    texts = Noised(
        ids=ids, lengths=tuple(lengths.tolist()), origin=np.where(new, -1, near), near=near
    )
    mentions = Mentions(starts=starts, sizes=sizes, entities=named, forms=before.forms)
    return ReplacedTexts(
        rows=texts.rows(rows),
        mentions=mentions,
        originals=before.entities,
        replaced=changed,
        lacked_room=lacking,
    )


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
