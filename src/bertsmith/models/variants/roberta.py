"""RoBERTa (Liu et al. 2019, arXiv:1907.11692): BERT, byte-level BPE, masked LM only."""

from __future__ import annotations

from dataclasses import replace

from bertsmith.models.positions import Learned
from bertsmith.models.variant import ENCODER, HeadSpec, masked_lm_head, sized
from bertsmith.models.variants import bert

SPEC = replace(
    bert.SPEC,
    vocab_size=50_265,
    positions=Learned(rows=514, first=2),
    segments=1,
    norm_eps=1e-5,
    pad_id=1,
)
SIZES = {"base": SPEC, "large": sized(SPEC, 24, 1024)}
NAMES = {
    **bert.ENCODER_NAMES,
    "heads.masked_lm.dense": "lm_head.dense",
    "heads.masked_lm.norm": "lm_head.layer_norm",
    "heads.masked_lm.bias": "lm_head.bias",
    "heads.sequence.dense": "classifier.dense",
    "heads.sequence.output": "classifier.out_proj",
    "heads.token.output": "classifier",
    "heads.span.output": "qa_outputs",
}
TIED = {
    "lm_head.decoder.weight": "encoder.embeddings.tokens.weight",
    "lm_head.decoder.bias": "heads.masked_lm.bias",
}
HEADS = {
    **bert.HEADS,
    "masked_lm": HeadSpec(activation="gelu", build=masked_lm_head, reads_tokens=True),
    "sequence": HeadSpec(reads="first", activation="tanh", dropped=True),
}
CONFIG = replace(
    bert.CONFIG,
    positions_after_pad=True,
    defaults={**bert.DEFAULTS, "pad_id": 1},
)
ARCHITECTURES = {
    ENCODER: "RobertaModel",
    "masked_lm": "RobertaForMaskedLM",
    "sequence": "RobertaForSequenceClassification",
    "token": "RobertaForTokenClassification",
    "span": "RobertaForQuestionAnswering",
}
VARIANT = replace(
    bert.VARIANT,
    name="roberta",
    model_type="roberta",
    spec=SPEC,
    sizes=SIZES,
    prefix="roberta",
    names=NAMES,
    tied=TIED,
    config=CONFIG,
    heads=HEADS,
    architectures=ARCHITECTURES,
    causal_architectures={"masked_lm": "RobertaForCausalLM"},
    aliases=("xlm-roberta", "camembert"),
)
