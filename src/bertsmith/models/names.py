"""Tensor names, ours and published, there and back."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from bertsmith.errors import ConfigError
from bertsmith.models.config.keys import expressible
from bertsmith.models.spec import Spec
from bertsmith.models.tensor_forms import PLAIN, Form, Joined, StoredAs, join
from bertsmith.models.variant import Head, Variant
from bertsmith.models.variants import VARIANTS, find

if TYPE_CHECKING:
    from torch import Tensor

    from bertsmith.models.build import Model

OWN = "bertsmith."  # before names of ours that no published model has
NUMBER = re.compile(r"(?<=\.)\d+(?=\.)")
OLD_ENDINGS = {".gamma": ".weight", ".beta": ".bias"}  # names of TensorFlow in files before 2020
BUFFERS = (
    ".position_ids",
    ".token_type_ids",
    ".positions_encoding",
    ".attn.bias",  # GPT's causal mask
    ".attn.masked_bias",
)
VOCABULARY_HEADS = {"masked_lm", "language_model"}
SHARED = ("encoder.", "decoder.")  # beginnings of our names that have the prefix of the family


@dataclass(frozen=True, slots=True, kw_only=True)
class StateMatch:
    """Which published tensor is which of ours.

    `names` maps ours to the stored name. `missing` are published names of tensors that are not
    there. `tied` maps stored copies to the tensor of ours they must equal. `unused` belong to
    heads of this family that are not wanted, `buffers` hold nothing that was trained, and
    `leftovers` are everything else.
    """

    names: dict[str, str]
    missing: tuple[str, ...]
    tied: dict[str, str]
    unused: tuple[str, ...]
    buffers: tuple[str, ...]
    leftovers: tuple[str, ...]


def to_published(variant: str | Variant, ours: str, *, prefix: bool = True) -> str:
    """The published name of one of our tensors, with the prefix it has in a model with heads."""
    data = find(variant)
    entry, ending = _entry(data, ours)
    if entry is None:
        return OWN + ours
    name = (entry.name if isinstance(entry, StoredAs) else entry) + ending
    number = NUMBER.search(ours)
    if number is not None:
        name = name.replace("{i}", number.group())
    return f"{data.prefix}.{name}" if prefix and ours.startswith(SHARED) else name


def form_of(variant: str | Variant, ours: str) -> Form:
    """The form in which one of our tensors is stored."""
    entry, _ = _entry(find(variant), ours)
    return entry.form if isinstance(entry, StoredAs) else PLAIN


def _entry(data: Variant, ours: str) -> tuple[str | StoredAs | None, str]:
    """A tensor's entry in the table of names, and the ending that the entry leaves open."""
    pattern = NUMBER.sub("{i}", ours, count=1)
    if pattern in data.names:
        return data.names[pattern], ""
    module, _, ending = pattern.rpartition(".")
    return data.names.get(module), f".{ending}"


def from_published(
    variant: str | Variant, published: str, *, heads: Sequence[str] | None = None
) -> str | None:
    """Our name of a published tensor, None if this family has none of that name.

    Families use one name for the classifier of texts and of tokens: `heads` tells which is meant.
    """
    data = find(variant)
    name = _plain(published, data)
    if name.startswith(OWN):
        return name.removeprefix(OWN)
    for pattern, entry in data.names.items():
        if (
            pattern.startswith("heads.")
            and heads is not None
            and pattern.split(".")[1] not in heads
        ):
            continue
        target = entry.name if isinstance(entry, StoredAs) else entry
        shape = re.escape(target).replace(r"\{i\}", r"(\d+)") + r"(\.(?:weight|bias))?"
        match = re.fullmatch(shape, name)
        if match is None:
            continue
        ending = match.groups()[-1] or ""
        single = isinstance(entry, StoredAs) or pattern.endswith((".weight", ".bias"))
        if bool(ending) == single:
            continue  # an entry is of a single tensor, or of a module with several
        return pattern.replace("{i}", match.group(1) if "{i}" in target else "") + ending
    return None


def tensor_names(
    variant: str | Variant, spec: Spec, heads: Sequence[Head | str] = ()
) -> dict[str, str]:
    """Every tensor of a model, ours -> published: what a folder of it holds."""
    return _names(variant, spec, heads, _ours(variant, spec, heads))


def published_state(model: Model) -> dict[str, Tensor]:
    """The tensors of a model under their published names, each once."""
    ours = dict(model.named_parameters())
    names = _names(model.variant, model.spec, model.head_specs, ours)
    state: dict[str, Tensor] = {}
    parts: dict[str, list[tuple[Joined, Tensor]]] = {}
    for name, tensor in ours.items():
        form = PLAIN if names[name].startswith(OWN) else form_of(model.variant, name)
        stored = form.to_stored(tensor.detach(), model.spec.heads)
        if isinstance(form, Joined):
            parts.setdefault(names[name], []).append((form, stored))
        else:
            state[names[name]] = stored
    return state | {name: join(tensors) for name, tensors in parts.items()}


def ours_state(
    variant: str | Variant,
    spec: Spec,
    published: Iterable[str],
    *,
    heads: Sequence[Head | str] = (),
    ours: Iterable[str] | None = None,
) -> StateMatch:
    """Match stored tensor names with ours, whatever prefix or age they have.

    `ours` are the names of the model's tensors, if it is there; else it is built to find them.
    """
    data = find(variant)
    wanted = _names(data, spec, heads, _ours(data, spec, heads) if ours is None else ours)
    kinds = {head if isinstance(head, str) else head.kind for head in heads}
    by_plain: dict[str, list[str]] = {}
    for one, name in wanted.items():
        by_plain.setdefault(_plain(name, data), []).append(one)
    names: dict[str, str] = {}
    tied: dict[str, str] = {}
    unused, buffers, leftovers = [], [], []
    for stored in published:
        plain = _plain(stored, data)
        fitting = by_plain.get(plain, [])
        if fitting and fitting[0] not in names:
            names |= dict.fromkeys(fitting, stored)
        elif plain in data.copies:
            tied[stored] = data.copies[plain]
        elif plain in data.tied and kinds & VOCABULARY_HEADS:
            tied[stored] = data.tied[plain]
        elif ("." + plain).endswith(BUFFERS):
            buffers.append(stored)
        elif not fitting and _foreign_head(variant, plain):
            unused.append(stored)
        else:
            leftovers.append(stored)
    missing = tuple(dict.fromkeys(name for one, name in wanted.items() if one not in names))
    # A decoder stored without the bias it is tied to still holds that bias.
    for stored, target in list(tied.items()):
        if target not in names and target in wanted:
            names[target] = stored
            missing = tuple(name for name in missing if name != wanted[target])
            del tied[stored]
    return StateMatch(
        names=names,
        missing=missing,
        tied=tied,
        unused=tuple(unused),
        buffers=tuple(buffers),
        leftovers=tuple(leftovers),
    )


def with_stored_pooler(variant: str | Variant, spec: Spec, published: Iterable[str]) -> Spec:
    """The spec with a pooler if, and only if, the stored tensors have one."""
    data = find(variant)
    name = _plain(to_published(data, "encoder.pooler.weight"), data)
    own = OWN + "encoder.pooler.weight"
    return replace(spec, pooler=any(_plain(stored, data) in (name, own) for stored in published))


def _ours(variant: str | Variant, spec: Spec, heads: Sequence[Head | str]) -> list[str]:
    from bertsmith.models.build import build  # torch, which reading a config alone does not need

    return [name for name, _ in build(variant, spec, heads=heads, device="meta").named_parameters()]


def _names(
    variant: str | Variant, spec: Spec, heads: Sequence[Head | str], ours: Iterable[str]
) -> dict[str, str]:
    if not expressible(variant, spec):
        return {name: OWN + name for name in ours}
    names = {name: to_published(variant, name, prefix=bool(heads)) for name in ours}
    taken: dict[str, str] = {}
    for name, published in names.items():
        other = taken.setdefault(published, name)
        if other != name and not isinstance(form_of(variant, name), Joined):
            raise ConfigError(
                f"{other} and {name} are both published as {published}: "
                "save the two heads in two folders"
            )
    return names


def _foreign_head(variant: str | Variant, plain: str) -> bool:
    """Whether a stored name belongs to some head of this family."""
    data: Variant = find(variant)
    if plain in data.tied or plain.startswith(OWN + "heads."):
        return True
    ours = from_published(variant, plain)
    return ours is not None and ours.startswith("heads.")


def _plain(stored: str, own: Variant) -> str:
    """A stored name without wrapper and family prefix, in today's spelling."""
    name = stored.removeprefix("module.")
    families = [variant.prefix for variant in VARIANTS.values() if variant.prefix == variant.name]
    for prefix in (own.prefix, *families):
        if name.startswith(f"{prefix}."):
            name = name.removeprefix(f"{prefix}.")
            break
    for old, new in OLD_ENDINGS.items():
        if name.endswith(old):
            return name.removesuffix(old) + new
    return name
