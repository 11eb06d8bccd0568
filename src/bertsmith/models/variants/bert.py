"""BERT (Devlin et al. 2018, arXiv:1810.04805), small sizes: Turc et al. 2019, arXiv:1908.08962."""

from __future__ import annotations

from bertsmith.models.spec import Spec
from bertsmith.models.variant import (
    ENCODER,
    ConfigTable,
    HeadSpec,
    Variant,
    masked_lm_head,
    replaced_token_head,
    sized,
)

SPEC = Spec()
SIZES = {
    "tiny": sized(SPEC, 2, 128),
    "mini": sized(SPEC, 4, 256),
    "small": sized(SPEC, 4, 512),
    "medium": sized(SPEC, 8, 512),
    "base": SPEC,
    "large": sized(SPEC, 24, 1024),
}
ENCODER_NAMES = {
    "encoder.embeddings.tokens": "embeddings.word_embeddings",
    "encoder.embeddings.positions": "embeddings.position_embeddings",
    "encoder.embeddings.segments": "embeddings.token_type_embeddings",
    "encoder.embeddings.norm": "embeddings.LayerNorm",
    "encoder.blocks.{i}.attention.query": "encoder.layer.{i}.attention.self.query",
    "encoder.blocks.{i}.attention.key": "encoder.layer.{i}.attention.self.key",
    "encoder.blocks.{i}.attention.value": "encoder.layer.{i}.attention.self.value",
    "encoder.blocks.{i}.attention.output": "encoder.layer.{i}.attention.output.dense",
    "encoder.blocks.{i}.attention_norm": "encoder.layer.{i}.attention.output.LayerNorm",
    "encoder.blocks.{i}.feed_forward.up": "encoder.layer.{i}.intermediate.dense",
    "encoder.blocks.{i}.feed_forward.down": "encoder.layer.{i}.output.dense",
    "encoder.blocks.{i}.feed_forward_norm": "encoder.layer.{i}.output.LayerNorm",
    "encoder.pooler": "pooler.dense",
}
NAMES = {
    **ENCODER_NAMES,
    "heads.masked_lm.dense": "cls.predictions.transform.dense",
    "heads.masked_lm.norm": "cls.predictions.transform.LayerNorm",
    "heads.masked_lm.bias": "cls.predictions.bias",
    "heads.next_sentence.output": "cls.seq_relationship",
    "heads.sequence.output": "classifier",
    "heads.token.output": "classifier",
    "heads.span.output": "qa_outputs",
}
TIED = {
    "cls.predictions.decoder.weight": "encoder.embeddings.tokens.weight",
    "cls.predictions.decoder.bias": "heads.masked_lm.bias",
}
HEADS = {
    "masked_lm": HeadSpec(activation="spec", build=masked_lm_head, reads_tokens=True),
    "next_sentence": HeadSpec(reads="pooled"),
    "sentence_order": HeadSpec(reads="pooled", dropped=True),
    "replaced_token": HeadSpec(activation="spec", build=replaced_token_head),
    "sequence": HeadSpec(reads="pooled", dropped=True),
    "token": HeadSpec(dropped=True),
    "span": HeadSpec(),
}
KEYS = {
    "vocab_size": ("vocab_size",),
    "hidden": ("hidden_size",),
    "layers": ("num_hidden_layers",),
    "heads": ("num_attention_heads",),
    "feed_forward": ("intermediate_size",),
    "activation": ("hidden_act",),
    "dropout": ("hidden_dropout_prob",),
    "attention_dropout": ("attention_probs_dropout_prob",),
    "segments": ("type_vocab_size",),
    "norm_eps": ("layer_norm_eps",),
    "pad_id": ("pad_token_id",),
}
CAUSAL = {"sees": ("is_decoder",)}  # of families whose blocks can be causal
DEFAULTS: dict[str, object] = {
    "activation": "gelu",
    "dropout": 0.1,
    "attention_dropout": 0.1,
    "segments": 2,
    "norm_eps": 1e-12,
    "pad_id": 0,
    "sees": False,
}
HARMLESS = frozenset(
    (
        "classifier_dropout",
        "directionality",
        "pooler_fc_size",
        "pooler_num_attention_heads",
        "pooler_num_fc_layers",
        "pooler_size_per_head",
        "pooler_type",
    )
)
CONFIG = ConfigTable(
    keys={**KEYS, **CAUSAL},
    defaults=DEFAULTS,
    sparse=frozenset(CAUSAL),
    head_dropout={"sequence": "classifier_dropout", "token": "classifier_dropout"},
    harmless=HARMLESS,
)
ARCHITECTURES = {
    ENCODER: "BertModel",
    "masked_lm": "BertForMaskedLM",
    "next_sentence": "BertForNextSentencePrediction",
    "masked_lm+next_sentence": "BertForPreTraining",
    "sequence": "BertForSequenceClassification",
    "token": "BertForTokenClassification",
    "span": "BertForQuestionAnswering",
}
VARIANT = Variant(
    name="bert",
    model_type="bert",
    spec=SPEC,
    sizes=SIZES,
    prefix="bert",
    names=NAMES,
    tied=TIED,
    config=CONFIG,
    heads=HEADS,
    architectures=ARCHITECTURES,
    causal_architectures={"masked_lm": "BertLMHeadModel"},
)
