"""Sentence settings as the files sentence-transformers reads, of every release since 2.0."""

from __future__ import annotations

from typing import Any

from bertsmith import __version__
from bertsmith.folders.sentence import ACTIVATIONS, MODULES, POOLING, SENTENCE_CONFIG
from bertsmith.models.sentence_spec import DenseLayer, SentenceSettings


def sentence_files(settings: SentenceSettings, *, hidden: int) -> dict[str, Any]:
    """The JSON content of each file by its path inside the folder."""
    files: dict[str, Any] = {
        "sentence_bert_config.json": {
            "max_seq_length": settings.max_length,
            "do_lower_case": settings.lowercase,
        },
        SENTENCE_CONFIG: {
            "__version__": {"bertsmith": __version__},
            "model_type": "SentenceTransformer",
            "prompts": dict(settings.prompts),
            "default_prompt_name": settings.default_prompt,
            "similarity_fn_name": settings.similarity,
        },
        "1_Pooling/config.json": _pooling(settings, hidden),
    }
    kinds = ["Transformer", "Pooling"]
    for number, dense in enumerate(settings.dense, start=2):
        kinds.append("Dense")
        files[f"{number}_Dense/config.json"] = _dense(dense)
    if settings.normalize:
        kinds.append("Normalize")
        files[f"{len(kinds) - 1}_Normalize/config.json"] = {
            "module_input_name": "sentence_embedding",
            "module_output_name": "sentence_embedding",
        }
    files[MODULES] = [
        {
            "idx": number,
            "name": str(number),
            "path": f"{number}_{kind}" if number else "",
            "type": f"sentence_transformers.models.{kind}",
        }
        for number, kind in enumerate(kinds)
    ]
    return files


def _pooling(settings: SentenceSettings, hidden: int) -> dict[str, Any]:
    """Old flags and the new key side by side.

    Old releases hand every key to a constructor that knows `pooling_mode` as one word but neither
    a list nor `embedding_dimension`, and 6 reads `word_embedding_dimension` as well, so the first
    is written as a list only where the flags cannot say it, and the second not at all.
    """
    config: dict[str, Any] = {"word_embedding_dimension": hidden}
    config |= {flag: ours in settings.pooling for ours, flag, _ in POOLING}
    config["include_prompt"] = settings.pools_prompt
    words = [{ours: word for ours, _, word in POOLING}[kind] for kind in settings.pooling]
    in_flag_order = tuple(ours for ours, _, _ in POOLING if ours in settings.pooling)
    if len(words) == 1 and words != ["mean_sqrt_len_tokens"]:
        config["pooling_mode"] = words[0]
    elif settings.pooling != in_flag_order:
        config["pooling_mode"] = words
    return config


def _dense(dense: DenseLayer) -> dict[str, Any]:
    return {
        "in_features": dense.inputs,
        "out_features": dense.outputs,
        "bias": dense.has_bias,
        "activation_function": {ours: theirs for theirs, ours in ACTIVATIONS.items()}[
            dense.activation
        ],
    }
