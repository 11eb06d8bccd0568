"""BART (Lewis et al. 2019, arXiv:1910.13461): BERT's encoder and a decoder that looks at it.

MASS (Song et al. 2019, arXiv:1905.02450) is the same model with `embedding_scale`.
"""

from __future__ import annotations

from dataclasses import replace

from bertsmith.models.positions import Learned, RowsKey
from bertsmith.models.spec import DecoderSpec, Spec
from bertsmith.models.tensor_forms import AsRow, StoredAs
from bertsmith.models.variant import ENCODER, ConfigTable, HeadSpec, language_model_head, sized
from bertsmith.models.variants import bert


def _size(layers: int, hidden: int) -> Spec:
    """As many layers in the decoder as in the encoder."""
    spec = sized(_SHAPE, layers, hidden)
    decoder = DecoderSpec(layers=layers, heads=spec.heads, feed_forward=spec.feed_forward)
    return replace(spec, decoder=decoder)


_SHAPE = replace(
    bert.SPEC,
    vocab_size=50_265,
    positions=Learned(rows=1026, first=2),
    segments=0,
    norm_eps=1e-5,
    pooler=False,
    attention_dropout=0.0,
    pad_id=1,
)
SPEC = _size(6, 768)
SIZES = {
    "tiny": _size(2, 128),  # as small as those of BERT
    "mini": _size(4, 256),
    "small": _size(4, 512),
    "base": SPEC,
    "large": _size(12, 1024),
}


def _side(side: str, block: str) -> dict[str, str]:
    """Names of the encoder or the decoder, whose blocks are at `block`."""
    layer = f"{side}.layers.{{i}}"
    return {
        f"{side}.embeddings.positions": f"{side}.embed_positions",
        f"{side}.embeddings.norm": f"{side}.layernorm_embedding",
        **_attention(f"{block}.attention", f"{layer}.self_attn"),
        f"{block}.attention_norm": f"{layer}.self_attn_layer_norm",
        f"{block}.feed_forward.up": f"{layer}.fc1",
        f"{block}.feed_forward.down": f"{layer}.fc2",
        f"{block}.feed_forward_norm": f"{layer}.final_layer_norm",
    }


def _attention(ours: str, published: str) -> dict[str, str]:
    return {
        f"{ours}.query": f"{published}.q_proj",
        f"{ours}.key": f"{published}.k_proj",
        f"{ours}.value": f"{published}.v_proj",
        f"{ours}.output": f"{published}.out_proj",
    }


CROSS = "decoder.blocks.{i}.cross"
NAMES: dict[str, str | StoredAs] = {
    "encoder.embeddings.tokens": "shared",
    **_side("encoder", "encoder.blocks.{i}"),
    **_side("decoder", "decoder.blocks.{i}.block"),
    **_attention(f"{CROSS}_attention", "decoder.layers.{i}.encoder_attn"),
    f"{CROSS}_norm": "decoder.layers.{i}.encoder_attn_layer_norm",
    "heads.language_model.bias": StoredAs("final_logits_bias", AsRow()),
    "heads.sequence.dense": "classification_head.dense",
    "heads.sequence.output": "classification_head.out_proj",
}
TOKENS = "encoder.embeddings.tokens.weight"
COPIES = {"encoder.embed_tokens.weight": TOKENS, "decoder.embed_tokens.weight": TOKENS}
HEADS = {
    "language_model": HeadSpec(build=language_model_head, reads_tokens=True),
    "sequence": HeadSpec(reads="decoded", activation="tanh"),
    "token": HeadSpec(dropped=True),  # on the encoder's rows; no published class has it
    "span": HeadSpec(),  # as well
}
CONFIG = ConfigTable(
    keys={
        "vocab_size": ("vocab_size",),
        "hidden": ("d_model", "hidden_size"),
        "layers": ("encoder_layers", "num_hidden_layers"),
        "heads": ("encoder_attention_heads", "num_attention_heads"),
        "feed_forward": ("encoder_ffn_dim",),
        "decoder.layers": ("decoder_layers",),
        "decoder.heads": ("decoder_attention_heads",),
        "decoder.feed_forward": ("decoder_ffn_dim",),
        "decoder.start": ("decoder_start_token_id",),
        "activation": ("activation_function",),
        "dropout": ("dropout",),
        "attention_dropout": ("attention_dropout",),
        "embedding_scale": ("scale_embedding",),
        "pad_id": ("pad_token_id",),
    },
    defaults={
        "decoder.start": 2,
        "activation": "gelu",
        "dropout": 0.1,
        "attention_dropout": 0.0,
        "embedding_scale": False,
        "pad_id": 1,
    },
    constants={"is_encoder_decoder": True},
    rows_key=RowsKey(uncounted=2),
    head_dropout={"sequence": "classifier_dropout"},
    harmless=frozenset(
        (
            "activation_dropout",
            "classif_dropout",
            "classifier_dropout",
            "decoder_layerdrop",
            "encoder_layerdrop",
            "init_std",
        )
    ),
)
ARCHITECTURES = {
    ENCODER: "BartModel",
    "language_model": "BartForConditionalGeneration",
    "sequence": "BartForSequenceClassification",
}
VARIANT = replace(
    bert.VARIANT,
    name="bart",
    model_type="bart",
    spec=SPEC,
    sizes=SIZES,
    prefix="model",
    names=NAMES,
    tied={"lm_head.weight": TOKENS},
    copies=COPIES,
    config=CONFIG,
    heads=HEADS,
    architectures=ARCHITECTURES,
    causal_architectures={},
)
