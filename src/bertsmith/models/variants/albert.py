"""ALBERT (Lan et al. 2019, arXiv:1909.11942): factorized embedding, shared layers."""

from __future__ import annotations

from dataclasses import replace

from bertsmith.models.variant import ENCODER, sized
from bertsmith.models.variants import bert

SPEC = replace(
    bert.SPEC,
    vocab_size=30_000,
    embedding=128,
    projected=True,
    sharing="all",
    activation="gelu_tanh",
    dropout=0.0,
    attention_dropout=0.0,
)
SIZES = {
    "base": SPEC,
    "large": sized(SPEC, 24, 1024, embedding=128),
    "xlarge": sized(SPEC, 24, 2048, heads=16, embedding=128),
    "xxlarge": sized(SPEC, 12, 4096, heads=64, embedding=128),
}
BLOCK = "encoder.albert_layer_groups.{i}.albert_layers.0"
NAMES = {
    "encoder.embeddings.tokens": "embeddings.word_embeddings",
    "encoder.embeddings.positions": "embeddings.position_embeddings",
    "encoder.embeddings.segments": "embeddings.token_type_embeddings",
    "encoder.embeddings.norm": "embeddings.LayerNorm",
    "encoder.embeddings.project": "encoder.embedding_hidden_mapping_in",
    "encoder.blocks.{i}.attention.query": f"{BLOCK}.attention.query",
    "encoder.blocks.{i}.attention.key": f"{BLOCK}.attention.key",
    "encoder.blocks.{i}.attention.value": f"{BLOCK}.attention.value",
    "encoder.blocks.{i}.attention.output": f"{BLOCK}.attention.dense",
    "encoder.blocks.{i}.attention_norm": f"{BLOCK}.attention.LayerNorm",
    "encoder.blocks.{i}.feed_forward.up": f"{BLOCK}.ffn",
    "encoder.blocks.{i}.feed_forward.down": f"{BLOCK}.ffn_output",
    "encoder.blocks.{i}.feed_forward_norm": f"{BLOCK}.full_layer_layer_norm",
    "encoder.pooler": "pooler",
    "heads.masked_lm.dense": "predictions.dense",
    "heads.masked_lm.norm": "predictions.LayerNorm",
    "heads.masked_lm.bias": "predictions.bias",
    "heads.sentence_order.output": "sop_classifier.classifier",
    "heads.sequence.output": "classifier",
    "heads.token.output": "classifier",
    "heads.span.output": "qa_outputs",
}
TIED = {
    "predictions.decoder.weight": "encoder.embeddings.tokens.weight",
    "predictions.decoder.bias": "heads.masked_lm.bias",
}
CONFIG = replace(
    bert.CONFIG,
    sparse=frozenset(),
    keys={**bert.KEYS, "embedding": ("embedding_size",)},
    defaults={
        **bert.DEFAULTS,
        "embedding": 128,
        "activation": "gelu_new",
        "dropout": 0.0,
        "attention_dropout": 0.0,
    },
    constants={"inner_group_num": 1},
    grouped=True,
    head_dropout={
        "sequence": "classifier_dropout_prob",
        "token": "classifier_dropout_prob",
        "sentence_order": "classifier_dropout_prob",
    },
    harmless=frozenset(
        (
            "classifier_dropout_prob",
            "down_scale_factor",
            "gap_size",
            "net_structure_type",
            "num_memory_blocks",
        )
    ),
)
ARCHITECTURES = {
    ENCODER: "AlbertModel",
    "masked_lm": "AlbertForMaskedLM",
    "masked_lm+sentence_order": "AlbertForPreTraining",
    "sequence": "AlbertForSequenceClassification",
    "token": "AlbertForTokenClassification",
    "span": "AlbertForQuestionAnswering",
}
VARIANT = replace(
    bert.VARIANT,
    name="albert",
    model_type="albert",
    spec=SPEC,
    sizes=SIZES,
    prefix="albert",
    names=NAMES,
    tied=TIED,
    config=CONFIG,
    architectures=ARCHITECTURES,
    causal_architectures={},
)
