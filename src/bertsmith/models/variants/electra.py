"""ELECTRA (Clark et al. 2020, arXiv:2003.10555): tell replaced tokens from real ones; no pooler."""

from __future__ import annotations

from dataclasses import replace

from bertsmith.models.variant import ENCODER, HeadSpec, masked_lm_head, sized
from bertsmith.models.variants import bert

SPEC = replace(bert.SPEC, pooler=False)
SIZES = {
    "small": sized(SPEC, 12, 256, embedding=128),
    "base": SPEC,
    "large": sized(SPEC, 24, 1024),
}
NAMES = {
    **{ours: name for ours, name in bert.ENCODER_NAMES.items() if ours != "encoder.pooler"},
    "encoder.embeddings.project": "embeddings_project",
    "heads.masked_lm.dense": "generator_predictions.dense",
    "heads.masked_lm.norm": "generator_predictions.LayerNorm",
    "heads.masked_lm.bias": "generator_lm_head.bias",
    "heads.replaced_token.dense": "discriminator_predictions.dense",
    "heads.replaced_token.output": "discriminator_predictions.dense_prediction",
    "heads.sequence.dense": "classifier.dense",
    "heads.sequence.output": "classifier.out_proj",
    "heads.token.output": "classifier",
    "heads.span.output": "qa_outputs",
}
TIED = {"generator_lm_head.weight": "encoder.embeddings.tokens.weight"}
HEADS = {
    **bert.HEADS,
    "masked_lm": HeadSpec(activation="gelu", build=masked_lm_head, reads_tokens=True),
    "next_sentence": HeadSpec(reads="first"),
    "sentence_order": HeadSpec(reads="first", dropped=True),
    "sequence": HeadSpec(reads="first", activation="gelu", dropped=True),
}
CONFIG = replace(
    bert.CONFIG,
    keys={**bert.KEYS, **bert.CAUSAL, "embedding": ("embedding_size",)},
    defaults={**bert.DEFAULTS, "embedding": 128},
    harmless=bert.HARMLESS
    | frozenset(
        (
            "generator_size",
            "summary_activation",
            "summary_last_dropout",
            "summary_type",
            "summary_use_proj",
        )
    ),
)
ARCHITECTURES = {
    ENCODER: "ElectraModel",
    "masked_lm": "ElectraForMaskedLM",
    "replaced_token": "ElectraForPreTraining",
    "sequence": "ElectraForSequenceClassification",
    "token": "ElectraForTokenClassification",
    "span": "ElectraForQuestionAnswering",
}
VARIANT = replace(
    bert.VARIANT,
    name="electra",
    model_type="electra",
    spec=SPEC,
    sizes=SIZES,
    prefix="electra",
    names=NAMES,
    tied=TIED,
    config=CONFIG,
    heads=HEADS,
    architectures=ARCHITECTURES,
    causal_architectures={"masked_lm": "ElectraForCausalLM"},
)
