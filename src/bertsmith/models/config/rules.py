"""What keys of config.json mean: activations, believable sizes, keys that must be refused."""

from __future__ import annotations

from bertsmith.models.spec import Activation

ACTIVATIONS: dict[str, Activation] = {
    "gelu": "gelu",
    "gelu_python": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu_python_tanh": "gelu_tanh",
    "gelu_fast": "gelu_tanh",
    "relu": "relu",
    "silu": "silu",
    "swish": "silu",
    "tanh": "tanh",
}
PUBLISHED_ACTIVATIONS: dict[Activation, str] = {
    "gelu": "gelu",
    "gelu_tanh": "gelu_new",
    "relu": "relu",
    "silu": "silu",
    "tanh": "tanh",
}
# The largest sizes taken seriously: a hostile file must not make us allocate.
LIMITS = {
    "vocab_size": 20_000_000,
    "hidden": 65_536,
    "layers": 1_024,
    "heads": 4_096,
    "feed_forward": 1_048_576,
    "embedding": 65_536,
    "segments": 65_536,
}
MOST_PARAMETERS = 20_000_000_000
# Keys that change the numbers unless they hold one of these values.
REFUSED: dict[str, tuple[object, ...]] = {
    "add_cross_attention": (False, None),
    "alibi": (False, None),
    "auto_map": (None,),
    "cross_attention_hidden_size": (None,),
    "is_decoder": (False, None),
    "is_encoder_decoder": (False, None),
    "max_relative_position": (None,),
    "num_hidden_groups": (None,),
    "position_embedding_type": ("absolute", None),
    "pruned_heads": ({}, [], None),
    "quantization_config": (None,),
    "rope_parameters": (None,),
    "rope_scaling": (None,),
    "rope_theta": (None,),
    "rotary_emb_base": (None,),
    "rotary_value": (False, None),
    "use_relative_position": (False, None),
    "use_task_id": (False, None),
}
# Keys that change no number of an encoder in eval mode.
HARMLESS = frozenset(
    (
        "_attn_implementation",
        "_name_or_path",
        "attn_implementation",
        "begin_suppress_tokens",
        "bos_token_id",
        "chunk_size_feed_forward",
        "decoder_start_token_id",
        "dtype",
        "eos_token_id",
        "finetuning_task",
        "gradient_checkpointing",
        "initializer_factor",
        "initializer_range",
        "is_composition",
        "language",
        "layer_norm_eps",
        "max_position_embeddings",
        "name_or_path",
        "output_attentions",
        "output_hidden_states",
        "output_past",
        "prefix",
        "return_dict",
        "sep_token_id",
        "task_specific_params",
        "tie_encoder_decoder",
        "tie_word_embeddings",
        "tokenizer_class",
        "torch_dtype",
        "torchscript",
        "transformers_version",
        "transformers.js_config",
        "use_bfloat16",
        "use_cache",
        "use_return_dict",
    )
)
