"""Sentence settings as the files sentence-transformers reads, of every release since 2.0."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from bertsmith import __version__
from bertsmith.errors import ConfigError
from bertsmith.folders.sentence import ACTIVATIONS, MODULES, POOLING, SENTENCE_CONFIG
from bertsmith.folders.tensors import SINGLE
from bertsmith.models.sentence_spec import DenseLayer, SentenceSettings

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, slots=True)
class StoredModule:
    """One module of a sentence model as sentence-transformers stores it."""

    kind: str
    config: dict[str, Any] | None = None
    tensors: Mapping[str, Tensor] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SentenceFiles:
    """What is stored of sentence settings, by path inside the folder."""

    json: dict[str, Any]
    tensors: dict[str, Mapping[str, Tensor]]


def sentence_files(settings: SentenceSettings, *, hidden: int, layers: int) -> SentenceFiles:
    """The files of a transformer of that width and depth that makes vectors in this way."""
    modules = [StoredModule("Transformer")]
    if settings.layer_mix is not None:
        modules.append(_mix(settings.layer_mix, hidden, layers))
    modules.append(StoredModule("Pooling", _pooling(settings, hidden)))
    files = module_files([*modules, *finishing(settings)], settings)
    files.json["sentence_bert_config.json"] = {
        "max_seq_length": settings.max_length,
        "do_lower_case": settings.lowercase,
    }
    return files


def finishing(settings: SentenceSettings) -> list[StoredModule]:
    """The modules that follow the pooling: dense layers and normalization."""
    modules = [_dense(number, layer) for number, layer in enumerate(settings.dense, start=1)]
    if settings.normalize:
        names = ("module_input_name", "module_output_name")
        modules.append(StoredModule("Normalize", dict.fromkeys(names, "sentence_embedding")))
    return modules


def module_files(modules: Sequence[StoredModule], settings: SentenceSettings) -> SentenceFiles:
    """modules.json and what it names; a transformer lies in the folder itself."""
    places = [
        "" if module.kind == "Transformer" else f"{number}_{module.kind}"
        for number, module in enumerate(modules)
    ]
    placed = list(zip(places, modules, strict=True))
    files: dict[str, Any] = {
        f"{place}/config.json": module.config
        for place, module in placed
        if module.config is not None
    }
    files[SENTENCE_CONFIG] = {
        "__version__": {"bertsmith": __version__},
        "model_type": "SentenceTransformer",
        "prompts": dict(settings.prompts),
        "default_prompt_name": settings.default_prompt,
        "similarity_fn_name": settings.similarity,
    }
    files[MODULES] = [
        {
            "idx": number,
            "name": str(number),
            "path": place,
            "type": f"sentence_transformers.models.{module.kind}",
        }
        for number, (place, module) in enumerate(placed)
    ]
    weights = {f"{place}/{SINGLE}": module.tensors for place, module in placed if module.tensors}
    return SentenceFiles(files, weights)


def _mix(mix: tuple[float, ...], hidden: int, layers: int) -> StoredModule:
    import torch

    if len(mix) != layers + 1:
        raise ConfigError(
            f"the layer mix has {len(mix)} weights, and the model {layers} layers: give one for "
            "the embeddings and one per layer"
        )
    config = {
        # The old name: release 6 reads it as well, and those before 6 no other.
        "word_embedding_dimension": hidden,
        "layer_start": 0,
        "num_hidden_layers": layers,
    }
    weights = torch.tensor(mix, dtype=torch.float32)
    return StoredModule("WeightedLayerPooling", config, {"layer_weights": weights})


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


def _dense(number: int, dense: DenseLayer) -> StoredModule:
    names = {ours: theirs for theirs, ours in ACTIVATIONS.items()}
    config = {
        "in_features": dense.inputs,
        "out_features": dense.outputs,
        "bias": dense.has_bias,
        "activation_function": names[dense.activation],
    }
    if dense.residual:  # releases before 5.7 do not know the key, and need not where it is false
        config["use_residual"] = True
    if set(dense.tensors) != set(dense.shapes):
        raise ConfigError(f"dense layer {number} has no weights; load the folder to get them")
    return StoredModule("Dense", config, dense.tensors)
