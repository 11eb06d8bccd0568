"""ERNIE 2.0 (Sun et al. 2019, arXiv:1907.12412): BERT with an embedding of pre-training tasks.

Most published folders, ERNIE 1.0 among them, have no such embedding (`use_task_id` is false).
"""

from __future__ import annotations

from dataclasses import replace

from bertsmith.models.variant import sized
from bertsmith.models.variants import bert

SPEC = replace(bert.SPEC, tasks=3)
SIZES = {
    "tiny": sized(SPEC, 2, 128),  # as small as those of BERT
    "mini": sized(SPEC, 4, 256),
    "small": sized(SPEC, 4, 512),
    "medium": sized(SPEC, 8, 512),
    "base": SPEC,
    "large": sized(SPEC, 24, 1024),
}
NAMES = {
    **bert.NAMES,
    "encoder.embeddings.channel_tasks": "embeddings.task_type_embeddings",
}
CONFIG = replace(
    bert.CONFIG,
    keys={
        **bert.KEYS,
        **bert.CAUSAL,
        "tasks": ("task_type_vocab_size",),
        "task": ("task_type_id",),  # ours: the task of texts that come without one
    },
    defaults={**bert.DEFAULTS, "tasks": 3, "task": 0},
    sparse=frozenset((*bert.CAUSAL, "task")),
    switches={"tasks": "use_task_id"},
)
ARCHITECTURES = {heads: name.replace("Bert", "Ernie") for heads, name in bert.ARCHITECTURES.items()}
VARIANT = replace(
    bert.VARIANT,
    name="ernie",
    model_type="ernie",
    spec=SPEC,
    sizes=SIZES,
    prefix="ernie",
    names=NAMES,
    config=CONFIG,
    architectures=ARCHITECTURES,
    causal_architectures={"masked_lm": "ErnieForCausalLM"},
)
