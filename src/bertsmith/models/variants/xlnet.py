"""XLNet (Yang et al. 2019, arXiv:1906.08237): two streams, relative positions and segments."""

from __future__ import annotations

from dataclasses import replace

from bertsmith.models.positions import SegmentRecurrent
from bertsmith.models.tensor_forms import PLAIN, AsRow, SplitHeads, StoredAs
from bertsmith.models.variant import ENCODER, ConfigTable, HeadSpec, language_model_head, sized
from bertsmith.models.variants import bert

SPEC = replace(
    bert.SPEC,
    vocab_size=32_000,
    positions=SegmentRecurrent(),
    segments=3,  # of A, B and <cls>; only whether two tokens share one is read
    embedding_norm=False,
    pooler=False,
    pad_id=5,
)
SIZES = {
    "tiny": sized(SPEC, 2, 128),  # as small as those of BERT
    "mini": sized(SPEC, 4, 256),
    "small": sized(SPEC, 4, 512),
    "base": SPEC,
    "large": sized(SPEC, 24, 1024),
}
BLOCK = "encoder.blocks.{i}"
ATTENTION, LAYER = f"{BLOCK}.attention", "layer.{i}"
NAMES: dict[str, str | StoredAs] = {
    "encoder.embeddings.tokens": "word_embedding",
    "encoder.query_row": StoredAs("mask_emb", AsRow()),
    f"{ATTENTION}.query.weight": StoredAs(f"{LAYER}.rel_attn.q", SplitHeads()),
    f"{ATTENTION}.key.weight": StoredAs(f"{LAYER}.rel_attn.k", SplitHeads()),
    f"{ATTENTION}.value.weight": StoredAs(f"{LAYER}.rel_attn.v", SplitHeads()),
    f"{ATTENTION}.output.weight": StoredAs(f"{LAYER}.rel_attn.o", SplitHeads(outward=True)),
    f"{ATTENTION}.relative.weight": StoredAs(f"{LAYER}.rel_attn.r", SplitHeads()),
    f"{ATTENTION}.content_bias": StoredAs(f"{LAYER}.rel_attn.r_w_bias", PLAIN),
    f"{ATTENTION}.position_bias": StoredAs(f"{LAYER}.rel_attn.r_r_bias", PLAIN),
    f"{ATTENTION}.segment_bias": StoredAs(f"{LAYER}.rel_attn.r_s_bias", PLAIN),
    f"{ATTENTION}.segments": StoredAs(f"{LAYER}.rel_attn.seg_embed", PLAIN),
    f"{BLOCK}.attention_norm": f"{LAYER}.rel_attn.layer_norm",
    f"{BLOCK}.feed_forward.up": f"{LAYER}.ff.layer_1",
    f"{BLOCK}.feed_forward.down": f"{LAYER}.ff.layer_2",
    f"{BLOCK}.feed_forward_norm": f"{LAYER}.ff.layer_norm",
    "heads.language_model.bias": "lm_loss.bias",
    "heads.sequence.dense": "sequence_summary.summary",
    "heads.sequence.output": "logits_proj",
    "heads.token.output": "classifier",
    "heads.span.output": "qa_outputs",
}
HEADS = {
    "language_model": HeadSpec(build=language_model_head, reads_tokens=True),
    "sequence": HeadSpec(reads="last", activation="tanh", dropped=True, dropout_first=False),
    "token": HeadSpec(),
    "span": HeadSpec(),
}
CONFIG = ConfigTable(
    keys={
        "vocab_size": ("vocab_size",),
        "hidden": ("d_model", "hidden_size"),
        "layers": ("n_layer", "num_hidden_layers"),
        "heads": ("n_head", "num_attention_heads"),
        "feed_forward": ("d_inner",),
        "activation": ("ff_activation",),
        "dropout": ("dropout",),
        "attention_dropout": ("dropout",),  # one number for both
        "norm_eps": ("layer_norm_eps",),
        "pad_id": ("pad_token_id",),
    },
    defaults={
        "activation": "gelu",
        "dropout": 0.1,
        "attention_dropout": 0.1,
        "norm_eps": 1e-12,
        "pad_id": 5,
    },
    constants={
        "attn_type": "bi",
        "untie_r": True,
        "same_length": False,
        "bi_data": False,
        "summary_type": "last",
        "summary_use_proj": True,
        "summary_activation": "tanh",
    },
    head_dropout={"sequence": "summary_last_dropout"},
    harmless=frozenset(
        (
            "clamp_len",
            "d_head",
            "end_n_top",
            "mem_len",
            "reuse_len",
            "start_n_top",
            "summary_last_dropout",
            "use_mems_eval",
            "use_mems_train",
        )
    ),
)
ARCHITECTURES = {
    ENCODER: "XLNetModel",
    "language_model": "XLNetLMHeadModel",
    "sequence": "XLNetForSequenceClassification",
    "token": "XLNetForTokenClassification",
    "span": "XLNetForQuestionAnsweringSimple",
}
VARIANT = replace(
    bert.VARIANT,
    name="xlnet",
    model_type="xlnet",
    spec=SPEC,
    sizes=SIZES,
    prefix="transformer",
    names=NAMES,
    tied={"lm_loss.weight": "encoder.embeddings.tokens.weight"},
    config=CONFIG,
    heads=HEADS,
    architectures=ARCHITECTURES,
    causal_architectures={},
)
