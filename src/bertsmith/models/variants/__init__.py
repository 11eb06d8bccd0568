"""The table of variants: one line for each file that describes a published model."""

from __future__ import annotations

from bertsmith.errors import unknown
from bertsmith.models.variant import Variant
from bertsmith.models.variants import (
    albert,
    bart,
    bert,
    distilbert,
    electra,
    ernie,
    gpt,
    gpt2,
    nezha,
    roberta,
    xlnet,
)

VARIANTS: dict[str, Variant] = {
    "bert": bert.VARIANT,
    "roberta": roberta.VARIANT,
    "albert": albert.VARIANT,
    "electra": electra.VARIANT,
    "distilbert": distilbert.VARIANT,
    "nezha": nezha.VARIANT,
    "gpt": gpt.VARIANT,
    "gpt2": gpt2.VARIANT,
    "bart": bart.VARIANT,
    "xlnet": xlnet.VARIANT,
    "ernie": ernie.VARIANT,
}


def find(name: str | Variant) -> Variant:
    """The variant of that name; a variant object is itself."""
    if isinstance(name, Variant):
        return name
    if name not in VARIANTS:
        raise unknown("variant", name, VARIANTS)
    return VARIANTS[name]
