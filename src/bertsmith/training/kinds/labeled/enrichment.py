"""The enrichment of a fine-tuning, and the job without it that shows what it is worth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from bertsmith.errors import ConfigError
from bertsmith.folders.kinds import kind_if_any
from bertsmith.labeled.example import Example
from bertsmith.labeled.spec import Column, column_of, extra_name
from bertsmith.labeled.triples import read_triples
from bertsmith.runtime.tagging import folder_tagger
from bertsmith.tasks.enrichment.branches import BranchSettings, Knowledge
from bertsmith.tasks.enrichment.enrichment import Enrichment, check_enriched
from bertsmith.tasks.enrichment.tags import Channel, ChannelReading, channel_columns
from bertsmith.tasks.task import Task
from bertsmith.training.checkpoints.resume import Fact
from bertsmith.training.kinds.labeled.recipe import FinetuneRecipe

if TYPE_CHECKING:
    from bertsmith.training.kinds.labeled.learner import FinetuneJob

ABLATION = "without-"  # and the section: the folder of the run without it, in the run's own


def recipe_enrichment(
    recipe: FinetuneRecipe, task: Task, rows: Sequence[Example], *, device: str = "cpu"
) -> Enrichment | None:
    """What the recipe joins to the passages of these training rows; None: nothing."""
    graph, channel = recipe.knowledge, recipe.channel
    if graph is not None:
        check_enriched(task, "--knowledge (section knowledge)")
        settings = BranchSettings(branches=graph.branches, match_case=graph.match_case)
        facts = read_triples(Path(graph.file), match_case=graph.match_case)
        if not any(facts.entities(text) for row in rows for text in row.texts):
            raise ConfigError(
                f"--knowledge {graph.file}: none of its {facts.subjects:,} subjects is in a "
                "training text, so nothing can be learned from it; give a graph of these texts "
                "(subjects are whole words; upper case matters with knowledge.match_case=true)"
            )
        return Knowledge(graph=facts, settings=settings)
    if channel is None:
        return None
    check_enriched(task, "--channel (section channel)")
    reading = ChannelReading(
        column=channel.column, structures=channel.structures, width=channel.width
    )
    if kind_if_any(Path(channel.column)) is not None:
        tagger, model = folder_tagger(channel.column, device=device)
        return Channel.of(reading, rows, model=model, tagger=tagger)
    return Channel.of(reading, rows)


def enrichment_facts(recipe: FinetuneRecipe) -> dict[str, Fact]:
    """What a checkpoint records of files that the recipe names."""
    if recipe.knowledge is not None:
        return {"knowledge.digest": read_triples(Path(recipe.knowledge.file)).digest}
    if recipe.channel is not None and kind_if_any(Path(recipe.channel.column)) is not None:
        from bertsmith.folders.keys import model_key

        return {"channel.key": model_key(recipe.channel.column)}
    return {}


def extra_columns(recipe: FinetuneRecipe) -> tuple[Column, ...]:
    """Columns of the data that the recipe reads besides texts and labels."""
    channel = recipe.channel
    read = channel is not None and kind_if_any(Path(channel.column)) is None
    tags = channel_columns(channel.column) if channel is not None and read else ()
    return (*recipe.head.meta, *recipe.auxiliary, *map(column_of, tags))


def extra_cells(example: Example, recipe: FinetuneRecipe) -> list[str | None]:
    """What a row has in those columns."""
    return [example.extra.get(extra_name(column)) for column in extra_columns(recipe)]


def ablation_of(job: FinetuneJob) -> FinetuneJob | None:
    """The same job without its enrichment, in a folder below; None: there is none to leave out."""
    recipe = job.recipe
    if recipe.knowledge is not None and recipe.knowledge.ablation:
        key = Knowledge.key
    elif recipe.channel is not None and recipe.channel.ablation:
        key = Channel.key
    else:
        return None
    plain = recipe.model_copy(update={"knowledge": None, "channel": None})
    return replace(job, recipe=plain, out=job.folder / f"{ABLATION}{key}")
