"""The model to fine-tune: an encoder with the head of a task, and the folder of the result."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import torch

from bertsmith.errors import ConfigError
from bertsmith.files.atomic_folder import result_folder
from bertsmith.folders.encoders import LoadedEncoder
from bertsmith.folders.extras import HEAD, KNOWLEDGE, Extras, task_extras
from bertsmith.folders.read import LoadedFolder
from bertsmith.folders.vocabulary_growth import grow_model
from bertsmith.folders.word_encoders.read import WordFolder
from bertsmith.folders.word_encoders.write import save_words
from bertsmith.folders.write import save_model
from bertsmith.labeled.example import Example
from bertsmith.labeled.spec import DataSpec
from bertsmith.models.build import Model, build
from bertsmith.models.config.labels import NO_LABELS, Labels
from bertsmith.models.spec import Spec
from bertsmith.models.surgery import copy_weights, whole_model
from bertsmith.models.text_model import TextModel
from bertsmith.models.variant import Head
from bertsmith.models.variants import find
from bertsmith.models.word_encoders.word_model import WordModel
from bertsmith.tasks.enrichment.enrichment import Enrichment
from bertsmith.tasks.enrichment.tag_channel import ChannelShape
from bertsmith.tasks.model.columns import Auxiliary, MetaTables
from bertsmith.tasks.model.from_settings import published_head, task_model
from bertsmith.tasks.model.heads import HeadShape
from bertsmith.tasks.model.layers import HeadSettings
from bertsmith.tasks.model.published import as_published
from bertsmith.tasks.model.task_model import TaskModel
from bertsmith.tasks.model.text_vector import Pooling, VectorSettings
from bertsmith.tasks.task import Task
from bertsmith.text.encoding import FieldEncoder
from bertsmith.text.tokenizer import Tokenizer
from bertsmith.text.whole_words.tokenizer import WordTokenizer
from bertsmith.training.kinds.labeled.recipe import FinetuneRecipe
from bertsmith.training.trainable import with_dropout

log = logging.getLogger(__name__)


def vector_settings(recipe: FinetuneRecipe, loaded: LoadedFolder) -> VectorSettings:
    """How texts become vectors; auto follows a sentence model's own pooling.

    Where the family's head reads a pooler and the folder has none, nothing has taught the first
    token to speak for its text: all tokens are read then. In a causal model the last token is the
    only one that has seen all of its text, so it is the one that is read (Radford et al. 2018);
    with a bidirectional LSTM above the encoder every token has, and all are read.
    """
    wanted = recipe.vector
    shape = find(loaded.model.variant).heads.get("sequence")
    reads_first = shape is None or shape.reads in ("first", "pooled")
    blind = loaded.model.spec.sees == "before" and recipe.head.lstm is None
    if blind and (wanted.pooling == "first" or (reads_first and wanted.pooling == "published")):
        raise ConfigError(
            f"vector.pooling = {wanted.pooling} reads the first token, which sees nothing but "
            "itself in a causal model; set vector.pooling to last, mean, max or attention"
        )
    if wanted.pooling != "auto":
        return VectorSettings(pooling=wanted.pooling, layers=wanted.read_layers)
    own = loaded.folder.sentence
    if own is not None and len(own.pooling) == 1:
        pooling = own.pooling[0]
        if pooling == "mean" or pooling == "max" or (pooling == "first" and not blind):
            return VectorSettings(pooling=pooling, layers=wanted.read_layers)
    if recipe.head.lstm is not None:
        return VectorSettings(pooling="mean", layers=wanted.read_layers)
    if blind and reads_first:
        return VectorSettings(pooling="last", layers=wanted.read_layers)
    if shape is not None and shape.reads == "pooled" and not loaded.model.spec.pooler:
        return VectorSettings(pooling="mean", layers=wanted.read_layers)
    if recipe.encoder.pair == "bi-encoder":
        return VectorSettings(pooling="mean", layers=wanted.read_layers)
    plain = recipe.head.is_plain and wanted.read_layers == "last"
    other: Pooling = "first" if reads_first else "mean"
    return VectorSettings(pooling="published" if plain else other, layers=wanted.read_layers)


def build_task_model(
    recipe: FinetuneRecipe,
    loaded: LoadedEncoder,
    task: Task,
    *,
    meta_sizes: Mapping[str, int],
    auxiliary: Sequence[Auxiliary] = (),
    channel: ChannelShape | None = None,
    device: str = "cpu",
) -> tuple[TaskModel, FieldEncoder]:
    """The module to train, and its tokenizer with the recipe's special tokens."""
    random = torch.Generator().manual_seed(recipe.run.seed)
    model: TextModel
    if isinstance(loaded, WordFolder):
        model, vector, head = loaded.model, word_vector(recipe), recipe.head
        tokenizer: FieldEncoder = loaded.tokenizer
    else:
        parts = _token_parts(recipe, loaded, task, channel, random, device)
        model, tokenizer, vector, head = parts
    whole = task_model(
        model,
        task,
        vector=vector,
        head=head,
        lengths=recipe.length,
        meta_sizes=meta_sizes,
        auxiliary=auxiliary,
        random=random,
    )
    if recipe.encoder.frozen:
        whole.freeze()
    return whole, tokenizer


def word_vector(recipe: FinetuneRecipe) -> VectorSettings:
    """How texts of words become vectors: all words are read where the recipe does not say."""
    pooling = "mean" if recipe.vector.pooling == "auto" else recipe.vector.pooling
    return VectorSettings(pooling=pooling, layers=recipe.vector.read_layers)


def _token_parts(
    recipe: FinetuneRecipe,
    loaded: LoadedFolder,
    task: Task,
    channel: ChannelShape | None,
    random: torch.Generator,
    device: str,
) -> tuple[Model, Tokenizer, VectorSettings, HeadSettings]:
    """A model of tokens with the heads of the task, its tokenizer, text vector and own head."""
    tokenizer, source = loaded.tokenizer, loaded.model
    if recipe.encoder.special_tokens:
        tokenizer = tokenizer.add_tokens(recipe.encoder.special_tokens)
        source = grow_model(source, loaded.tokenizer, tokenizer)
    vector, head = vector_settings(recipe, loaded), recipe.head
    if channel is not None:
        pooling = "max" if recipe.vector.pooling == "auto" else vector.pooling
        vector = VectorSettings(pooling=pooling, layers=recipe.vector.read_layers, channel=channel)
        head = channel_head(head, task, source.spec.hidden)
    kind = published_head(task, vector, head)
    heads = []
    if kind is not None:
        outputs = task.outputs if kind in ("sequence", "token") else 2
        heads = [Head(kind=kind, outputs=outputs, dropout=recipe.head.dropout)]
    return _encoder(recipe, source, heads, random, device), tokenizer, vector, head


def channel_head(head: HeadSettings, task: Task, hidden: int) -> HeadSettings:
    """The head of a model with a channel: a dense layer with tanh, as published, if none is set."""
    if task.reads == "rows" or head.layers:
        return head
    return head.model_copy(update={"layers": (hidden,)})


def _encoder(
    recipe: FinetuneRecipe,
    source: Model,
    heads: list[Head],
    random: torch.Generator,
    device: str,
) -> Model:
    spec = _spec(recipe, source.spec, device)
    shapes = find(source.variant).heads
    pooled = any(shapes[head.kind].reads == "pooled" for head in heads)
    model = build(source.variant, replace(spec, pooler=pooled), heads=heads, generator=random)
    copied = copy_weights(source, model)
    fresh = [name for name, _ in model.named_parameters() if name not in copied]
    odd = [name for name in fresh if name.startswith("encoder.") and "pooler" not in name]
    if odd:
        raise ConfigError(f"the model has no {odd[0]}; it cannot be fine-tuned")
    if any("pooler" in name for name in fresh):
        log.info("the model has no pooler: it is initialized at random, like the head")
    return model


def _spec(recipe: FinetuneRecipe, spec: Spec, device: str) -> Spec:
    settings = recipe.encoder
    if settings.task is not None and settings.task >= max(spec.tasks, 1):
        raise ConfigError(
            f"encoder.task={settings.task}: this model has {spec.tasks or 'no'} tasks"
            + (f", numbered from 0 to {spec.tasks - 1}" if spec.tasks else "; leave it out")
        )
    task = spec.task if settings.task is None else settings.task
    return replace(with_dropout(spec, settings, device=device), task=task)


def save_task_model(
    model: TaskModel,
    tokenizer: FieldEncoder,
    out: Path,
    *,
    recipe: FinetuneRecipe,
    tables: MetaTables,
    rows: Sequence[Example],
    spec: DataSpec | None = None,
    enrichment: Enrichment | None = None,
) -> None:
    """Put the model folder into `out`, with all that prediction needs to know.

    `rows` are training rows; how many texts they have is recorded.
    """
    counts = {len(row.texts) for row in rows}
    head = {name: tensor.detach().float().cpu() for name, tensor in model.stored().items()}
    about = model.head.to_json()
    whole = whole_model(model.model) if isinstance(model.model, Model) else None
    published = None if whole is None else as_published(model, whole, recipe.length)
    if published is not None:  # the same logits in a form that other libraries load
        whole, head = published, {}
        plain = HeadSettings(dropout=recipe.head.dropout)
        about = HeadShape(vector=VectorSettings(), head=plain).to_json()
    section = {
        "name": model.task.name,
        **model.task.to_json(),
        "length": recipe.length.model_dump(mode="json"),
        **about,
        "meta": {column: dict(table) for column, table in tables.items()},
        "texts": counts.pop() if len(counts) == 1 else 0,
    }
    if enrichment is not None:
        section[enrichment.key] = enrichment.to_json()
    extras = task_extras(section, head, spec.to_values() if spec else None)
    if enrichment is not None:
        extras = extras | Extras(files=enrichment.files())
    with result_folder(out) as staging:
        _save_encoder(model, whole, tokenizer, staging, extras)
    if not head:
        (out / HEAD).unlink(missing_ok=True)  # of a run with other settings
    if KNOWLEDGE not in extras.files:
        (out / KNOWLEDGE).unlink(missing_ok=True)


def _save_encoder(
    model: TaskModel, whole: Model | None, tokenizer: FieldEncoder, path: Path, extras: Extras
) -> None:
    """The encoder with all that the task adds; `whole` is a model of tokens on the CPU."""
    if whole is not None and isinstance(tokenizer, Tokenizer):
        save_model(whole, tokenizer, path, labels=labels_of(model.task), extras=extras)
    elif isinstance(model.model, WordModel) and isinstance(tokenizer, WordTokenizer):
        save_words(model.model, tokenizer, path, extras=extras)
    else:
        raise TypeError(f"{type(model.model)} cannot be saved with {type(tokenizer)}")


def labels_of(task: Task) -> Labels:
    """Labels and kind of problem as config.json spells them."""
    head = task.kind.head
    if not head.labeled:
        return NO_LABELS
    plain = tuple(f"LABEL_{number}" for number in range(task.outputs))
    names = task.labels if len(task.labels) == task.outputs else plain
    return Labels(names=names, problem=head.problem)
