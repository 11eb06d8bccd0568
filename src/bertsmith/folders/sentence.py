"""Sentence settings of a folder: how rows become one vector, in the old and the new schema.

Nothing is ever imported by a name that stands in a folder: the types of `modules.json` and the
activations are looked up in the tables below, and what is not there is refused by name.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, cast, get_args

from bertsmith.errors import FolderError
from bertsmith.files.safe_folder import Folder, check_name
from bertsmith.models.sentence_spec import (
    DenseActivation,
    DenseLayer,
    PoolingKind,
    SentenceSettings,
    Similarity,
)

MODULES = "modules.json"
SENTENCE_CONFIG = "config_sentence_transformers.json"

# Ours, the flag of the old schema, the word of the new one. The order is that of concatenation.
POOLING: tuple[tuple[PoolingKind, str, str], ...] = (
    ("first", "pooling_mode_cls_token", "cls"),
    ("max", "pooling_mode_max_tokens", "max"),
    ("mean", "pooling_mode_mean_tokens", "mean"),
    ("mean_sqrt_len", "pooling_mode_mean_sqrt_len_tokens", "mean_sqrt_len_tokens"),
    ("weighted_mean", "pooling_mode_weightedmean_tokens", "weightedmean"),
    ("last", "pooling_mode_lasttoken", "lasttoken"),
)
ACTIVATIONS: dict[str, DenseActivation] = {
    "torch.nn.modules.linear.Identity": "identity",
    "torch.nn.modules.activation.Tanh": "tanh",
    "torch.nn.modules.activation.ReLU": "relu",
    "torch.nn.modules.activation.GELU": "gelu",
    "torch.nn.modules.activation.SiLU": "silu",
    "torch.nn.modules.activation.Sigmoid": "sigmoid",
}
_MODULE_HOMES = (
    "sentence_transformers.models",
    "sentence_transformers.base.modules",
    "sentence_transformers.sentence_transformer.modules",
)
_MODULE_FILES = {  # the module of each kind inside its home
    "Transformer": "transformer",
    "WeightedLayerPooling": "weighted_layer_pooling",
    "StaticEmbedding": "static_embedding",
    "Pooling": "pooling",
    "Dense": "dense",
    "Normalize": "normalize",
    "Dropout": "dropout",
}
# Before one config for all, the file was called after the model inside.
TRANSFORMER_CONFIGS = tuple(
    f"sentence_{kind}_config.json"
    for kind in ("bert", "roberta", "distilbert", "camembert", "albert", "xlm-roberta", "xlnet")
)


@dataclass(frozen=True, slots=True)
class LayerMixPlace:
    """Where the weights of a layer mix lie, and the first hidden state they are for."""

    folder: Folder
    start: int
    layers: int


@dataclass(frozen=True, slots=True)
class SentenceFolder:
    """Where the parts of a sentence model lie: the transformer and its dense layers.

    `static`: there is no transformer but a table of token vectors.
    """

    settings: SentenceSettings | None
    transformer: Folder
    dense: tuple[Folder, ...] = ()
    mix: LayerMixPlace | None = None
    static: bool = False


def read_sentence(folder: Folder) -> SentenceFolder:
    """The sentence settings of a folder; None if it is a plain encoder."""
    if not folder.has(MODULES):
        return SentenceFolder(None, folder)
    steps = _steps(folder)
    kinds = [kind for kind, _ in steps if kind != "Dropout"]  # dropout does nothing at inference
    _check_order(kinds, where=str(folder.path / MODULES))
    by_kind = {kind: place for kind, place in steps if kind != "Dense"}
    dense = tuple(place or folder for kind, place in steps if kind == "Dense")
    if by_kind.get("Normalize") is not None:
        _check_normalize(cast("Folder", by_kind["Normalize"]))
    settings = SentenceSettings(
        normalize="Normalize" in kinds,
        dense=tuple(_read_dense(place) for place in dense),
        **_read_model_config(folder),
    )
    if "StaticEmbedding" in kinds:
        return SentenceFolder(settings, by_kind["StaticEmbedding"] or folder, dense, static=True)
    transformer = by_kind["Transformer"] or folder
    pooling, pools_prompt = _read_pooling(by_kind["Pooling"] or folder)
    length, lowercase = _read_transformer(transformer)
    settings = replace(
        settings,
        pooling=pooling,
        pools_prompt=pools_prompt,
        max_length=length,
        lowercase=lowercase,
    )
    mix = None
    if "WeightedLayerPooling" in kinds:
        mix = _read_mix(by_kind["WeightedLayerPooling"] or folder)
    return SentenceFolder(settings, transformer, dense, mix)


def _check_order(kinds: list[str], *, where: str) -> None:
    dense = ["Dense"] * kinds.count("Dense")
    starts = (
        ["Transformer", "Pooling"],
        ["Transformer", "WeightedLayerPooling", "Pooling"],
        ["StaticEmbedding"],
    )
    forms = [[*start, *dense, *end] for start in starts for end in ([], ["Normalize"])]
    if kinds not in forms:
        raise FolderError(
            f"{where}: the modules {', '.join(kinds) or '(none)'} do not follow Transformer (or "
            "StaticEmbedding alone), WeightedLayerPooling, Pooling, Dense ..., Normalize; this "
            "order is not supported"
        )


def module_folders(folder: Folder) -> list[Folder]:
    """The folder itself and those of its modules, in their order."""
    found = [folder]
    if folder.has(MODULES):
        found += [place for _, place in _steps(folder) if place is not None]
    return found


def _steps(folder: Folder) -> list[tuple[str, Folder | None]]:
    """The kind and the place of each module; None where there is no folder of its own."""
    where = folder.path / MODULES
    entries = folder.json_list(MODULES)
    if len(entries) > 64:
        raise FolderError(f"{where}: {len(entries)} modules; that is not a sentence model")
    steps: list[tuple[str, Folder | None]] = []
    for entry in entries:
        if not isinstance(entry, dict):
            raise FolderError(f"{where}: each module must be an object with type and path")
        kind = _kind(entry.get("type"), where=str(where))
        name = entry.get("path", "")
        if name == "":
            steps.append((kind, None))
            continue
        place = check_name(name, source=str(where))
        optional = kind in ("Normalize", "Dropout")  # old folders name them and keep nothing there
        empty = optional and not folder.has(place)
        steps.append((kind, None if empty else folder.part(place, source=str(where))))
    return steps


def _kind(name: object, *, where: str) -> str:
    """The last word of a module type, if its home is one that sentence-transformers has used."""
    for home in _MODULE_HOMES:
        for kind, file in _MODULE_FILES.items():
            if name in (f"{home}.{kind}", f"{home}.{file}.{kind}", f"{home}.{kind}.{kind}"):
                return kind
    raise FolderError(
        f"{where}: the module type {ascii(name)[:120]} is not supported, and no code is loaded "
        f"from a folder; supported: {', '.join(_MODULE_FILES)} of sentence-transformers"
    )


def _read_pooling(folder: Folder) -> tuple[tuple[PoolingKind, ...], bool]:
    """The kinds of pooling in order, and whether the rows of a prompt are pooled too."""
    config = folder.json_object("config.json")
    where = folder.path / "config.json"
    known = {"pooling_mode", "include_prompt", "embedding_dimension", "word_embedding_dimension"}
    known |= {flag for _, flag, _ in POOLING}
    _refuse_unknown(config, known, where=str(where))
    words = {word: ours for ours, _, word in POOLING}
    mode = config.get("pooling_mode")
    if mode is None:
        flags = [ours for ours, flag, _ in POOLING if _flag(config, flag, False, where=str(where))]
        stated = any(flag in config for _, flag, _ in POOLING)
        kinds = tuple(flags) if flags or stated else ("mean",)
    else:
        modes = mode if isinstance(mode, list) else [mode]
        bad = [item for item in modes if not isinstance(item, str) or item not in words]
        if bad or not modes:
            raise FolderError(
                f"{where}: pooling_mode {ascii(mode)[:80]} is not one of {', '.join(words)}"
            )
        kinds = tuple(words[item] for item in modes)
    if not kinds:
        raise FolderError(
            f"{where}: no kind of pooling is switched on; set one of the flags to true"
        )
    return kinds, _flag(config, "include_prompt", True, where=str(where))


def _read_mix(folder: Folder) -> LayerMixPlace:
    config = folder.json_object("config.json")
    where = str(folder.path / "config.json")
    known = {"embedding_dimension", "word_embedding_dimension", "layer_start", "num_hidden_layers"}
    _refuse_unknown(config, known, where=where)
    layers = _count({"num_hidden_layers": 12, **config}, "num_hidden_layers", where=where)
    start = config.get("layer_start", 4)
    if type(start) is not int or not 0 <= start <= layers:
        raise FolderError(f"{where}: layer_start must be from 0 to {layers}, not {start!r}")
    return LayerMixPlace(folder, start, layers)


def _read_dense(folder: Folder) -> DenseLayer:
    config = folder.json_object("config.json")
    where = str(folder.path / "config.json")
    allowed = {"in_features", "out_features", "bias", "activation_function", "use_residual"}
    allowed |= {"module_input_name", "module_output_name"}
    _refuse_unknown(config, allowed, where=where)
    for key in ("module_input_name", "module_output_name"):
        if config.get(key) not in (None, "sentence_embedding"):
            raise FolderError(
                f"{where}: {key} is {ascii(config[key])[:60]}; only the text vector is"
            )
    named = config.get("activation_function", "torch.nn.modules.activation.Tanh")
    if not isinstance(named, str) or named not in ACTIVATIONS:
        raise FolderError(
            f"{where}: the activation {ascii(named)[:80]} is not supported and its code is never "
            f"loaded; supported: {', '.join(ACTIVATIONS)}"
        )
    return DenseLayer(
        inputs=_count(config, "in_features", where=where),
        outputs=_count(config, "out_features", where=where),
        activation=ACTIVATIONS[named],
        has_bias=_flag(config, "bias", True, where=where),
        residual=_flag(config, "use_residual", False, where=where),
    )


def _check_normalize(folder: Folder) -> None:
    if not folder.has("config.json"):
        return
    config = folder.json_object("config.json")
    where = str(folder.path / "config.json")
    _refuse_unknown(config, {"module_input_name", "module_output_name"}, where=where)
    if any(value not in (None, "sentence_embedding") for value in config.values()):
        raise FolderError(f"{where}: only the text vector can be normalized, not {config}")


def _read_transformer(folder: Folder) -> tuple[int | None, bool]:
    """The longest text and whether texts are lowered first, from whichever file this age used."""
    name = next((name for name in TRANSFORMER_CONFIGS if folder.has(name)), None)
    if name is None:
        return None, False
    config = folder.json_object(name)
    where = str(folder.path / name)
    task = config.get("transformer_task", "feature-extraction")
    output = config.get("module_output_name", "token_embeddings")
    if (task, output) != ("feature-extraction", "token_embeddings"):
        raise FolderError(f"{where}: transformer_task {task!r} is not supported")
    for key in ("query_length", "document_length", "query_expansion"):
        if config.get(key) is not None:
            raise FolderError(f"{where}: {key} belongs to a multi-vector model; not supported")
    length = config.get("max_seq_length")
    if length is not None:
        length = _count(config, "max_seq_length", where=where)
    return length, _flag(config, "do_lower_case", False, where=where)


def _read_model_config(folder: Folder) -> dict[str, Any]:
    """Prompts and similarity, as keyword arguments of SentenceSettings."""
    if not folder.has(SENTENCE_CONFIG):
        return {}
    config = folder.json_object(SENTENCE_CONFIG)
    where = str(folder.path / SENTENCE_CONFIG)
    kind = config.get("model_type", "SentenceTransformer")
    if kind != "SentenceTransformer":
        raise FolderError(f"{where}: model_type {ascii(kind)[:60]} is not a sentence encoder")
    prompts = config.get("prompts") or {}
    if not isinstance(prompts, dict) or not all(isinstance(v, str) for v in prompts.values()):
        raise FolderError(f"{where}: prompts must map names to texts")
    default = config.get("default_prompt_name")
    if default is not None and (not isinstance(default, str) or default not in prompts):
        raise FolderError(f"{where}: default_prompt_name {ascii(default)[:60]} is not a prompt")
    similarity = config.get("similarity_fn_name") or "cosine"
    if similarity not in get_args(Similarity):
        raise FolderError(
            f"{where}: similarity_fn_name {ascii(similarity)[:60]} is not one of "
            f"{', '.join(get_args(Similarity))}"
        )
    return {"prompts": prompts, "default_prompt": default, "similarity": similarity}


def _refuse_unknown(config: dict[str, Any], known: set[str], *, where: str) -> None:
    strange = sorted(set(config) - known)
    if strange:
        raise FolderError(
            f"{where}: the key {ascii(strange[0])[:80]} is not understood and could change the "
            "numbers; remove it if it does not"
        )


def _flag(config: dict[str, Any], key: str, default: bool, *, where: str) -> bool:
    value = config.get(key, default)
    if not isinstance(value, bool):
        raise FolderError(f"{where}: {key} must be true or false, not {ascii(value)[:40]}")
    return value


def _count(config: dict[str, Any], key: str, *, where: str) -> int:
    value = config.get(key)
    if type(value) is not int or not 1 <= value <= 1 << 24:
        raise FolderError(f"{where}: {key} must be a whole number from 1, not {ascii(value)[:40]}")
    return value
