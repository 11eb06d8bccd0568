"""DistilBERT (Sanh et al. 2019, arXiv:1910.01108): half the layers, no segments, no pooler."""

from __future__ import annotations

from dataclasses import replace

from bertsmith.models.variant import ENCODER, ConfigTable, HeadSpec
from bertsmith.models.variants import bert

SPEC = replace(bert.SPEC, layers=6, segments=0, pooler=False)
SIZES = {"base": SPEC}
NAMES = {
    "encoder.embeddings.tokens": "embeddings.word_embeddings",
    "encoder.embeddings.positions": "embeddings.position_embeddings",
    "encoder.embeddings.norm": "embeddings.LayerNorm",
    "encoder.blocks.{i}.attention.query": "transformer.layer.{i}.attention.q_lin",
    "encoder.blocks.{i}.attention.key": "transformer.layer.{i}.attention.k_lin",
    "encoder.blocks.{i}.attention.value": "transformer.layer.{i}.attention.v_lin",
    "encoder.blocks.{i}.attention.output": "transformer.layer.{i}.attention.out_lin",
    "encoder.blocks.{i}.attention_norm": "transformer.layer.{i}.sa_layer_norm",
    "encoder.blocks.{i}.feed_forward.up": "transformer.layer.{i}.ffn.lin1",
    "encoder.blocks.{i}.feed_forward.down": "transformer.layer.{i}.ffn.lin2",
    "encoder.blocks.{i}.feed_forward_norm": "transformer.layer.{i}.output_layer_norm",
    "heads.masked_lm.dense": "vocab_transform",
    "heads.masked_lm.norm": "vocab_layer_norm",
    "heads.masked_lm.bias": "vocab_projector.bias",
    "heads.sequence.dense": "pre_classifier",
    "heads.sequence.output": "classifier",
    "heads.token.output": "classifier",
    "heads.span.output": "qa_outputs",
}
TIED = {"vocab_projector.weight": "encoder.embeddings.tokens.weight"}
HEADS = {
    **bert.HEADS,
    "next_sentence": HeadSpec(reads="first"),
    "sentence_order": HeadSpec(reads="first", dropped=True),
    "sequence": HeadSpec(reads="first", activation="relu", dropped=True, dropout_first=False),
    "span": HeadSpec(dropped=True),
}
CONFIG = ConfigTable(
    keys={
        "vocab_size": ("vocab_size",),
        "hidden": ("dim", "hidden_size"),
        "layers": ("n_layers", "num_hidden_layers"),
        "heads": ("n_heads", "num_attention_heads"),
        "feed_forward": ("hidden_dim",),
        "activation": ("activation",),
        "dropout": ("dropout",),
        "attention_dropout": ("attention_dropout",),
        "pad_id": ("pad_token_id",),
    },
    defaults={"activation": "gelu", "dropout": 0.1, "attention_dropout": 0.1, "pad_id": 0},
    head_dropout={"sequence": "seq_classif_dropout", "span": "qa_dropout"},
    harmless=frozenset(
        ("qa_dropout", "seq_classif_dropout", "sinusoidal_pos_embds", "tie_weights_")
    ),
)
ARCHITECTURES = {
    ENCODER: "DistilBertModel",
    "masked_lm": "DistilBertForMaskedLM",
    "sequence": "DistilBertForSequenceClassification",
    "token": "DistilBertForTokenClassification",
    "span": "DistilBertForQuestionAnswering",
}
VARIANT = replace(
    bert.VARIANT,
    name="distilbert",
    model_type="distilbert",
    spec=SPEC,
    sizes=SIZES,
    prefix="distilbert",
    names=NAMES,
    tied=TIED,
    config=CONFIG,
    heads=HEADS,
    architectures=ARCHITECTURES,
    causal_architectures={},
)
