"""The model to pre-train, fresh or from a folder, and the folder of the result."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import torch
from torch import nn

from bertsmith.corpus.shards import Corpus
from bertsmith.errors import ConfigError, TensorMismatchError
from bertsmith.files.atomic_folder import result_folder
from bertsmith.folders.extras import (
    HEADS_KEY,
    OBJECTIVE_HEADS,
    Extras,
    objective_heads,
    read_objective_heads,
)
from bertsmith.folders.read import LoadedFolder, load_model
from bertsmith.folders.tensors import listed
from bertsmith.folders.write import save_model
from bertsmith.models.build import Model, build
from bertsmith.models.init import look_at_neighbors
from bertsmith.models.spec import Spec
from bertsmith.models.surgery import copy_weights, whole_model, whole_tensor
from bertsmith.models.variant import Variant
from bertsmith.models.variants import find
from bertsmith.nn.inputs import TASKS
from bertsmith.objectives.program import PretrainModule, Program
from bertsmith.text.tokenizer import Tokenizer
from bertsmith.training.execution.rank_sync import on_first
from bertsmith.training.execution.ranks import Ranks
from bertsmith.training.pretrain.recipe import PretrainRecipe, attention_dropout, spec_of

log = logging.getLogger(__name__)

# Which segment a new one begins as: those of `unified`, sources and single texts as the first text
# of a pair, targets as the second.
SEGMENTS_LIKE = (0, 1, 0, 0, 0, 1)


def build_module(
    recipe: PretrainRecipe,
    corpus: Corpus,
    program: Program,
    *,
    init: str | Path | None = None,
    device: str = "cpu",
) -> PretrainModule:
    """The module to train; the same for the same seed."""
    if init is None:
        variant = find(recipe.model.variant)
        spec = spec_of(recipe.model, corpus.tokenizer(), device=device)
        loaded = None
    else:
        loaded = _source(recipe, corpus, init, device)
        variant, spec = loaded.model.variant, loaded.model.spec
    _check_length(recipe, spec)
    return program.build(RecipeBuilder(recipe, variant, spec, loaded))


class RecipeBuilder:
    """Builds the modules of a program by a recipe, or from a model folder."""

    def __init__(
        self, recipe: PretrainRecipe, variant: Variant, spec: Spec, loaded: LoadedFolder | None
    ) -> None:
        self.spec = spec
        self._recipe = recipe
        self._variant = variant
        self._loaded = loaded
        self._random = torch.Generator().manual_seed(recipe.run.seed)

    @property
    def vocabulary_head(self) -> str:
        """The kind of head over the vocabulary that the variant has."""
        return "masked_lm" if "masked_lm" in self._variant.heads else "language_model"

    def model(self, heads: Sequence[str], *, pooler: bool = False) -> Model:
        """The model to pre-train, with these heads, and a pooler if one of them needs it."""
        if self._loaded is None:
            return self._fresh(self.spec, heads, pooler=pooler)
        if self._recipe.model.init == "local_attention":
            log.warning("the weights come from a model folder: model.init does not change them")
        model = self._built(self.spec, heads, pooler=pooler)
        copied = copy_weights(self._loaded.model, model)
        _warn_fresh(_part(name) for name, _ in model.named_parameters() if name not in copied)
        stored = self._loaded.model.named_parameters()
        _warn_left_out(_part(name) for name, _ in stored if name not in copied)
        return model

    def companion(self, spec: Spec, heads: Sequence[str]) -> Model:
        """A further model of the same variant, always fresh."""
        return self._fresh(spec, heads)

    def _fresh(self, spec: Spec, heads: Sequence[str], *, pooler: bool = False) -> Model:
        model = self._built(spec, heads, pooler=pooler)
        if self._recipe.model.init == "local_attention":
            look_at_neighbors(model)
        return model

    def own_heads(self, make: Callable[[], Mapping[str, nn.Module]]) -> dict[str, nn.Module]:
        """Heads that published models do not have, drawn or from the folder."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self._recipe.run.seed)
            heads = dict(make())
        if self._loaded is not None:
            _fill_own_heads(nn.ModuleDict(heads), self._loaded)
        return heads

    def _built(self, spec: Spec, heads: Sequence[str], *, pooler: bool = False) -> Model:
        """A model with a pooler only where it is wanted or one of its heads reads it."""
        pooled = pooler or any(self._variant.heads[head].reads == "pooled" for head in heads)
        spec = replace(spec, pooler=pooled)
        return build(self._variant, spec, heads=heads, generator=self._random)


def _source(recipe: PretrainRecipe, corpus: Corpus, init: str | Path, device: str) -> LoadedFolder:
    """The model to continue from; its vocabulary must be that of the corpus."""
    loaded = load_model(init)
    corpus.require_vocabulary(loaded.tokenizer, str(init))
    model = loaded.model
    if model.variant.name != recipe.model.variant:
        raise ConfigError(
            f"{init} is a {model.variant.name} model and the recipe is for "
            f"{recipe.model.variant}; set model.variant={model.variant.name} or take another recipe"
        )
    shape = ("layers", "hidden", "heads", "embedding", "decoder_layers")
    changed = [name for name in shape if getattr(recipe.model, name)]
    if changed:
        raise ConfigError(f"with a model to continue from, model.{changed[0]} cannot be chosen")
    model.spec = replace(
        model.spec,
        dropout=model.spec.dropout if recipe.model.dropout is None else recipe.model.dropout,
        attention_dropout=attention_dropout(recipe.model, model.spec, device),
        sees=recipe.model.sees or model.spec.sees,
    )
    if recipe.model.segments is not None:
        _grow_segments(model, recipe.model.segments, str(init))
    if recipe.model.tasks is not None:
        _grow_tasks(model, recipe.model.tasks, str(init))
    return loaded


def _grow_segments(model: Model, count: int, source: str) -> None:
    """Further segments, each beginning as one that the model has."""
    table, had = model.encoder.embeddings.segments, model.spec.segments
    if count == had:
        return
    if table is None or not 2 <= had < count <= len(SEGMENTS_LIKE):
        raise ConfigError(
            f"{source} has {had} segments and the recipe {count}: 2 can become up to "
            f"{len(SEGMENTS_LIKE)}; set model.segments={had}"
        )
    like = [number if number < had else SEGMENTS_LIKE[number] for number in range(count)]
    grown = table.weight.detach()[like].clone()
    model.encoder.embeddings.segments = nn.Embedding(count, grown.shape[1], _weight=grown)
    model.spec = replace(model.spec, segments=count)


def _grow_tasks(model: Model, count: int, source: str) -> None:
    """Further tasks, each beginning as the first; those of a model without any as nothing."""
    embeddings, had = model.encoder.embeddings, model.spec.tasks
    if count < had:
        raise ConfigError(
            f"{source} has {had} tasks and the recipe {count}: set model.tasks={had} or more"
        )
    if count == had:
        return
    weight = embeddings.tokens.weight.new_zeros(count, embeddings.tokens.embedding_dim)
    if had:
        table = embeddings.channels[TASKS].get_parameter("weight").detach()
        weight[:had], weight[had:] = table, table[0]
    grown = build(
        model.variant, replace(model.spec, tasks=count), heads=model.head_specs, empty=True
    )
    copy_weights(model, grown)
    with torch.no_grad():
        grown.encoder.embeddings.channels[TASKS].get_parameter("weight").copy_(weight)
    model.encoder, model.spec = grown.encoder, grown.spec


def _fill_own_heads(heads: nn.ModuleDict, loaded: LoadedFolder) -> None:
    """The heads that objectives brought along, as the folder has them; each whole or not at all."""
    stored = read_objective_heads(loaded.folder.parts.transformer)
    ours = dict(heads.named_parameters())
    both = _objectives(ours) & _objectives(stored)
    wanted = {name: tuple(p.shape) for name, p in ours.items() if _objective(name) in both}
    given = {name: tuple(t.shape) for name, t in stored.items() if _objective(name) in both}
    if odd := [name for name in wanted | given if wanted.get(name) != given.get(name)]:
        raise TensorMismatchError(
            f"{loaded.folder.path / OBJECTIVE_HEADS}: {listed('tensors do not fit', odd)}; remove "
            f"{HEADS_KEY} from bertsmith.json there to begin these heads anew"
        )
    with torch.no_grad():
        for name in wanted:
            ours[name].copy_(stored[name])
    _warn_fresh(f"{name} head" for name in _objectives(ours) - both)
    _warn_left_out(f"{name} head" for name in _objectives(stored) - both)


def _objectives(names: Iterable[str]) -> set[str]:
    return {_objective(name) for name in names}


def _objective(name: str) -> str:
    """The objective whose head a tensor of `own_heads` belongs to."""
    return name.partition(".")[0]


def _part(name: str) -> str:
    """The part of a model that a parameter belongs to: "heads.masked_lm"."""
    return ".".join(name.split(".")[:2])


def _warn_fresh(parts: Iterable[str]) -> None:
    if named := sorted(set(parts)):
        log.warning("the model has no %s yet: these begin at random", ", ".join(named))


def _warn_left_out(parts: Iterable[str]) -> None:
    if named := sorted(set(parts)):
        log.warning("nothing trains the %s of the model: left out", ", ".join(named))


def _check_length(recipe: PretrainRecipe, spec: Spec) -> None:
    longest = max(inputs.max_length for inputs in recipe.inputs)
    if spec.longest is not None and longest > spec.longest:
        raise ConfigError(
            f"texts of {longest} tokens do not fit the {spec.longest} positions of the "
            "model; set model.positions, or a shorter input.max_length"
        )


def save_result(module: PretrainModule, tokenizer: Tokenizer, out: Path, ranks: Ranks) -> None:
    """Put the model folder into `out`, companions (ELECTRA's generator) into folders inside.

    Heads that published models do not have get a file of their own. With sharded weights
    every rank must call this; only the first one touches the disk.
    """
    model = whole_model(module.model)
    companions = {
        name: whole_model(one) for name, one in module.companions.items() if isinstance(one, Model)
    }
    own = {name: whole_tensor(tensor) for name, tensor in module.own_heads.named_parameters()}

    def write() -> None:
        for name, companion in companions.items():
            save_model(companion, tokenizer, out / name, overwrite=True)
        with result_folder(out) as staging:
            extras = objective_heads(own) | Extras(json=module.record)
            save_model(model, tokenizer, staging, extras=extras)
        if not own:
            (out / OBJECTIVE_HEADS).unlink(missing_ok=True)  # of a run with other objectives

    on_first(ranks, write)
