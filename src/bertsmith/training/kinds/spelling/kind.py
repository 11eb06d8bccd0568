"""The kind of training that reads wrong and right texts: spelling is corrected."""

from __future__ import annotations

from bertsmith.folders.read import read_folder
from bertsmith.labeled.errors.rows import read_corrections
from bertsmith.report.corrections import correction_result, correction_sections
from bertsmith.training.kind import Reading, TrainingKind, TrainingRequest
from bertsmith.training.kinds.spelling.learner import SpellingJob, spelling_learner
from bertsmith.training.kinds.spelling.recipe import CORRECT, CorrectRecipe, load_correct_recipe
from bertsmith.training.kinds.spelling.record import prove_corrections


def _recipe(request: TrainingRequest) -> CorrectRecipe:
    """The recipe by name or path with the overrides."""
    return load_correct_recipe(request.recipe, request.overrides)


def _read(reading: Reading[CorrectRecipe]) -> SpellingJob:
    """The wrong and right texts of each side, some with planted errors."""
    request, recipe = reading.request, reading.recipe
    splits = read_corrections(request.pair_files(), recipe.errors)
    notes = (note for data in splits.sides() for note in (*data.notes, *splits.notes))
    for remark in dict.fromkeys(notes):
        reading.audience.note(remark)
    return SpellingJob(
        recipe=recipe,
        task=CORRECT,
        model=request.model,
        rows=splits,
        out=request.out,
        accept=request.accept,
    )


SPELLING = TrainingKind(
    name="spelling",
    recipe=_recipe,
    check=lambda request, _: read_folder(request.model),
    read=_read,
    learner=spelling_learner,
    prove=prove_corrections,
    sections=correction_sections,
    result=correction_result,
)
