"""The kind of training that reads pairs of texts: targets are written, similar texts found."""

from __future__ import annotations

from bertsmith.folders.read import read_folder
from bertsmith.labeled.pairs.pairs import SentenceData
from bertsmith.labeled.pairs.splits import read_similar, read_written
from bertsmith.report.written_texts import writing_result, writing_sections
from bertsmith.training.kind import Audience, Reading, TrainingKind, TrainingRequest
from bertsmith.training.kinds.write.learner import WriteJob, write_learner
from bertsmith.training.kinds.write.recipe import WriteRecipe, load_write_recipe
from bertsmith.training.kinds.write.record import prove_writing


def _recipe(request: TrainingRequest) -> WriteRecipe:
    """The recipe by name or path, or that of the task, with the overrides."""
    return load_write_recipe(request.recipe or str(request.spec.task), request.overrides)


def _read(reading: Reading[WriteRecipe]) -> WriteJob:
    """The pairs of each side; how they were read is shown."""
    request, recipe = reading.request, reading.recipe
    files = request.pair_files()
    if recipe.similarity is None:
        splits = read_written(files)
    else:
        splits = read_similar(files, positive=recipe.data.positive)
    shown: set[str] = set()
    for data in splits.sides():
        if data.source not in shown:
            show_pairs(data, reading.audience)
        shown.add(data.source)
    for remark in splits.notes:
        reading.audience.note(remark)
    return WriteJob(
        recipe=recipe,
        task=str(request.spec.task),
        model=request.model,
        rows=splits,
        out=request.out,
        accept=request.accept,
    )


def show_pairs(data: SentenceData, audience: Audience) -> None:
    """How a file of pairs was read."""
    audience.lines([f"{data.source}, read as:", *(f"  {line}" for line in data.describe())])
    for remark in data.notes:
        audience.note(remark)


WRITE = TrainingKind(
    name="write",
    recipe=_recipe,
    check=lambda request, _: read_folder(request.model),
    read=_read,
    learner=write_learner,
    prove=prove_writing,
    sections=writing_sections,
    result=writing_result,
)
