"""The model to pre-train, fresh or from a folder, and the folder that comes out of it."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor, nn

from bertsmith.data.shards import Corpus
from bertsmith.errors import ConfigError, WriteError
from bertsmith.folders.read import load_model
from bertsmith.folders.write import save_model
from bertsmith.models.build import Model, build
from bertsmith.models.spec import Learned, Spec
from bertsmith.models.variants import find
from bertsmith.objectives import OBJECTIVES
from bertsmith.objectives.learner import Asking, Learner
from bertsmith.staged import sync
from bertsmith.text.tokenizer import Tokenizer
from bertsmith.training.model_settings import attention_dropout, narrowed, spec_of
from bertsmith.training.recipe import PretrainRecipe

log = logging.getLogger(__name__)

GENERATOR = "generator"
STAGING = ".model"


def build_learner(
    recipe: PretrainRecipe,
    corpus: Corpus,
    asking: Asking,
    *,
    init: str | Path | None = None,
    device: str = "cpu",
) -> Learner:
    """The module to train: model, generator if there is one, heads; the same for the same seed."""
    generator = torch.Generator().manual_seed(recipe.run.seed)
    if init is None:
        variant = recipe.model.variant
        spec = spec_of(recipe.model, corpus.tokenizer(), device=device)
        source = None
    else:
        source = _source(recipe, corpus, init, device)
        variant, spec = source.variant, source.spec
    _check_length(recipe, spec)
    model = _built(variant, spec, asking.heads, generator, source)
    small = None
    if recipe.generator is not None:
        small = _built(
            variant, narrowed(model.spec, recipe.generator.width), ["masked_lm"], generator, None
        )
    objectives = [OBJECTIVES[name] for name in recipe.objectives]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(recipe.run.seed)  # for heads that objectives bring along
        return Learner(model, objectives, generator=small)


def save_result(learner: Learner, tokenizer: Tokenizer, out: Path, *, write: bool) -> None:
    """Put the model folder into `out`, beside the run's own files; ELECTRA's generator inside.

    With sharded weights every rank must call this; only the one with `write` touches the disk.
    """
    model = _plain(learner.model)
    small = None if learner.generator is None else _plain(learner.generator)
    if not write:
        return
    if small is not None:
        save_model(small, tokenizer, out / GENERATOR, overwrite=True)
    staging = out / STAGING
    shutil.rmtree(staging, ignore_errors=True)  # of a process that was killed here
    save_model(model, tokenizer, staging)
    try:
        # The config comes last: a folder without one is not yet a model.
        for path in sorted(staging.iterdir(), key=lambda path: path.name == "config.json"):
            path.replace(out / path.name)
        staging.rmdir()
        sync(out)
    except OSError as fault:
        raise WriteError(f"cannot put the model into {out}: {fault.strerror or fault}") from fault


def _source(recipe: PretrainRecipe, corpus: Corpus, init: str | Path, device: str) -> Model:
    """The model to go on from; its vocabulary must be that of the corpus."""
    loaded = load_model(init)
    corpus.require_vocabulary(loaded.tokenizer, str(init))
    model = loaded.model
    if model.variant != recipe.model.variant:
        raise ConfigError(
            f"{init} is a {model.variant} model and the recipe asks for {recipe.model.variant}; "
            f"set model.variant={model.variant} or take another recipe"
        )
    changed = [n for n in ("layers", "hidden", "heads", "embedding") if getattr(recipe.model, n)]
    if changed:
        raise ConfigError(f"with a model to go on from, model.{changed[0]} cannot be chosen")
    model.spec = replace(
        model.spec,
        dropout=model.spec.dropout if recipe.model.dropout is None else recipe.model.dropout,
        attention_dropout=attention_dropout(recipe.model, model.spec, device),
    )
    return model


def _built(
    variant: str,
    spec: Spec,
    heads: Sequence[str],
    generator: torch.Generator,
    source: Model | None,
) -> Model:
    """A model with the heads asked for and a pooler only where one of them reads it."""
    pooled = any(find(variant).heads[head].reads == "pooled" for head in heads)
    model = build(variant, replace(spec, pooler=pooled), heads=heads, generator=generator)
    if source is not None:
        _copy(source, model)
    return model


@torch.no_grad()
def _copy(source: Model, target: Model) -> None:
    """Weights of the same name; says what has to begin anew and what is left behind."""
    stored = dict(source.named_parameters())
    ours = dict(target.named_parameters())
    for name in ours.keys() & stored.keys():
        ours[name].copy_(stored[name])
    parts = {_part(name) for name in ours.keys() - stored.keys()}
    if parts:
        log.warning("the model has no %s yet: these begin at random", ", ".join(sorted(parts)))
    parts = {_part(name) for name in stored.keys() - ours.keys()}
    if parts:
        log.warning("nothing trains the %s of the model: left out", ", ".join(sorted(parts)))


def _part(name: str) -> str:
    return ".".join(name.split(".")[:2])


def _check_length(recipe: PretrainRecipe, spec: Spec) -> None:
    longest = max(inputs.max_length for inputs in recipe.inputs)
    if isinstance(spec.positions, Learned) and longest > spec.positions.longest:
        raise ConfigError(
            f"texts of {longest} tokens do not fit the {spec.positions.longest} positions of the "
            "model; set model.positions, or a shorter input.max_length"
        )


def _plain(model: Model) -> Model:
    """The model on the CPU with whole tensors; a collective call if they are sharded."""
    tensors = {name: _whole(tensor) for name, tensor in model.named_parameters()}
    fresh = build(model.variant, model.spec, heads=model.head_specs, empty=True)
    _put(fresh, tensors)
    return fresh


def _whole(tensor: Tensor) -> Tensor:
    full = tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor
    return full.detach().float().cpu()


@torch.no_grad()
def _put(module: nn.Module, tensors: Mapping[str, Tensor]) -> None:
    for name, parameter in module.named_parameters():
        parameter.copy_(tensors[name])
