"""GPT (Radford et al. 2018): a causal LM with BERT's post-norm blocks and no embedding norm."""

from __future__ import annotations

from dataclasses import replace

from bertsmith.models.positions import Learned, RowsKey
from bertsmith.models.tensor_forms import Joined, StoredAs, Transposed
from bertsmith.models.variant import ENCODER, ConfigTable, HeadSpec, language_model_head
from bertsmith.models.variants import bert

SPEC = replace(
    bert.SPEC,
    vocab_size=40_478,
    activation="gelu_tanh",
    positions=Learned(rows=512),
    segments=0,
    embedding_norm=False,
    sees="before",
    norm_eps=1e-5,
    pooler=False,
)
SIZES = {"base": SPEC}


def matrices(ours: str, published: str) -> dict[str, str | StoredAs]:
    """Weight and bias of a layer whose weight is stored as (in, out)."""
    return {
        f"{ours}.weight": StoredAs(f"{published}.weight", Transposed()),
        f"{ours}.bias": f"{published}.bias",
    }


def joined(number: int, ours: str, published: str) -> dict[str, StoredAs]:
    """Part `number` of three in one stored layer."""
    return {
        f"{ours}.weight": StoredAs(f"{published}.weight", Joined(number, 3, Transposed())),
        f"{ours}.bias": StoredAs(f"{published}.bias", Joined(number, 3)),
    }


BLOCK = "encoder.blocks.{i}"
BLOCK_NAMES: dict[str, str | StoredAs] = {
    **joined(0, f"{BLOCK}.attention.query", "h.{i}.attn.c_attn"),
    **joined(1, f"{BLOCK}.attention.key", "h.{i}.attn.c_attn"),
    **joined(2, f"{BLOCK}.attention.value", "h.{i}.attn.c_attn"),
    **matrices(f"{BLOCK}.attention.output", "h.{i}.attn.c_proj"),
    f"{BLOCK}.attention_norm": "h.{i}.ln_1",
    **matrices(f"{BLOCK}.feed_forward.up", "h.{i}.mlp.c_fc"),
    **matrices(f"{BLOCK}.feed_forward.down", "h.{i}.mlp.c_proj"),
    f"{BLOCK}.feed_forward_norm": "h.{i}.ln_2",
}
NAMES: dict[str, str | StoredAs] = {
    "encoder.embeddings.tokens": "tokens_embed",
    "encoder.embeddings.positions": "positions_embed",
    **BLOCK_NAMES,
    "heads.sequence.output": "score",
}
TIED = {"lm_head.weight": "encoder.embeddings.tokens.weight"}
HEADS = {
    "language_model": HeadSpec(build=language_model_head, reads_tokens=True, bias=False),
    "sequence": HeadSpec(reads="last", bias=False),
    "token": HeadSpec(dropped=True),
    "span": HeadSpec(),
}
KEYS = {
    "vocab_size": ("vocab_size",),
    "hidden": ("n_embd", "hidden_size"),
    "layers": ("n_layer", "num_hidden_layers"),
    "heads": ("n_head", "num_attention_heads"),
    "dropout": ("resid_pdrop",),
    "attention_dropout": ("attn_pdrop",),
    "norm_eps": ("layer_norm_epsilon",),
    "pad_id": ("pad_token_id",),
}
DEFAULTS: dict[str, object] = {
    "dropout": 0.1,
    "attention_dropout": 0.1,
    "norm_eps": 1e-5,
    "pad_id": 0,
}
CONFIG = ConfigTable(
    keys={**KEYS, "activation": ("afn",)},
    defaults={**DEFAULTS, "activation": "gelu"},
    # The published code calls the approximation by tanh "gelu".
    activations={"gelu": "gelu_tanh", "relu": "relu", "silu": "silu", "swish": "silu"},
    copies={"embd_pdrop": "dropout"},
    sparse=frozenset(("pad_id",)),  # most folders have none, and a wrong one would be read
    feed_forward_ratio=4,
    rows_key=RowsKey("n_positions"),
    harmless=frozenset(
        (
            "n_ctx",
            "n_special",
            "predict_special_tokens",
            "summary_activation",
            "summary_first_dropout",
            "summary_proj_to_labels",
            "summary_type",
            "summary_use_proj",
        )
    ),
)
ARCHITECTURES = {
    ENCODER: "OpenAIGPTModel",
    "language_model": "OpenAIGPTLMHeadModel",
    "sequence": "OpenAIGPTForSequenceClassification",
}
VARIANT = replace(
    bert.VARIANT,
    name="gpt",
    model_type="openai-gpt",
    spec=SPEC,
    sizes=SIZES,
    prefix="transformer",
    names=NAMES,
    tied=TIED,
    config=CONFIG,
    heads=HEADS,
    architectures=ARCHITECTURES,
    causal_architectures={},
)
