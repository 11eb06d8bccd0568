"""GPT-2 (Radford et al. 2019): GPT with norms before its parts and one more at the end."""

from __future__ import annotations

from dataclasses import replace

from bertsmith.models.positions import Learned
from bertsmith.models.tensor_forms import StoredAs
from bertsmith.models.variant import ENCODER, sized
from bertsmith.models.variants import gpt

SPEC = replace(gpt.SPEC, vocab_size=50_257, positions=Learned(rows=1024), norm="before")
SIZES = {
    "tiny": sized(SPEC, 2, 128),  # as small as those of BERT
    "mini": sized(SPEC, 4, 256),
    "small": sized(SPEC, 4, 512),
    "base": SPEC,
    "medium": sized(SPEC, 24, 1024),
    "large": sized(SPEC, 36, 1280),
    "xl": sized(SPEC, 48, 1600),
}
NAMES: dict[str, str | StoredAs] = {
    "encoder.embeddings.tokens": "wte",
    "encoder.embeddings.positions": "wpe",
    **gpt.BLOCK_NAMES,
    "encoder.norm": "ln_f",
    "heads.sequence.output": "score",
    "heads.token.output": "classifier",
    "heads.span.output": "qa_outputs",
}
CONFIG = replace(
    gpt.CONFIG,
    keys={**gpt.KEYS, "activation": ("activation_function",), "feed_forward": ("n_inner",)},
    defaults={**gpt.DEFAULTS, "activation": "gelu_new"},
    activations=None,
    constants={"scale_attn_weights": True, "scale_attn_by_inverse_layer_idx": False},
    head_dropout={"token": "classifier_dropout"},
    harmless=gpt.CONFIG.harmless | {"classifier_dropout", "reorder_and_upcast_attn"},
)
ARCHITECTURES = {
    ENCODER: "GPT2Model",
    "language_model": "GPT2LMHeadModel",
    "sequence": "GPT2ForSequenceClassification",
    "token": "GPT2ForTokenClassification",
    "span": "GPT2ForQuestionAnswering",
}
VARIANT = replace(
    gpt.VARIANT,
    name="gpt2",
    model_type="gpt2",
    spec=SPEC,
    sizes=SIZES,
    names=NAMES,
    config=CONFIG,
    architectures=ARCHITECTURES,
)
