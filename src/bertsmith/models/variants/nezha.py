"""NEZHA (Wei et al. 2019, arXiv:1909.00204): functional relative positions, any length."""

from __future__ import annotations

from dataclasses import replace

from bertsmith.models.positions import FunctionalRelative
from bertsmith.models.variant import sized
from bertsmith.models.variants import bert

SPEC = replace(bert.SPEC, vocab_size=21_128, positions=FunctionalRelative(clip=64))
SIZES = {"base": SPEC, "large": sized(SPEC, 24, 1024)}
NAMES = {ours: name for ours, name in bert.NAMES.items() if ours != "encoder.embeddings.positions"}
CONFIG = replace(
    bert.CONFIG,
    keys=bert.KEYS,
    sparse=frozenset(),
    constants={"use_relative_position": True},
    harmless=bert.HARMLESS | {"max_position_embeddings", "embedding_size"},
)
ARCHITECTURES = {heads: name.replace("Bert", "Nezha") for heads, name in bert.ARCHITECTURES.items()}
VARIANT = replace(
    bert.VARIANT,
    name="nezha",
    model_type="nezha",
    spec=SPEC,
    sizes=SIZES,
    prefix="nezha",
    names=NAMES,
    config=CONFIG,
    architectures=ARCHITECTURES,
    causal_architectures={},
)
