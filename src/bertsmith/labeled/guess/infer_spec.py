"""Infers the data spec of a new file from the model's training data."""

from __future__ import annotations

from pathlib import Path

from bertsmith.errors import InputFileError
from bertsmith.labeled.example import TargetKind, target_kind, target_setting
from bertsmith.labeled.guess.guess_spec import guess_spec
from bertsmith.labeled.guess.json_rows import sample_rows
from bertsmith.labeled.guess.sample import take_sample
from bertsmith.labeled.spec import DataSpec
from bertsmith.wording import counted


def infer_spec(
    path: Path,
    given: DataSpec,
    trained: DataSpec | None,
    task: str,
    *,
    labeled: bool,
    target: str | None = None,
) -> DataSpec:
    """The spec of a file; what the user gave stays, the rest is as in training or guessed.

    `task` and `target` are the model's; None: the target that the task has by default. Without
    `labeled`, labels are not read, so wrong ones do no harm.
    """
    own_task = {"task": task} if target is None else target_setting(task, target)
    open_task = given if given.task else given.model_copy(update=own_task)
    if trained is not None and given.text is None and _has(path, given, trained):
        open_task = open_task.model_copy(update={"text": trained.text})
    own = _same_table(path, open_task, trained) or guess_spec(path, given=open_task)
    if given.task is None:
        own = own.model_copy(update={"why": {**own.why, "task": "what the model answers"}})
    if trained is not None and (own.format, own.columns) == (trained.format, trained.columns):
        own_settings = {name: getattr(open_task, name) for name in open_task.given}
        why = dict.fromkeys(trained.given - given.given, "as in training")
        reasons = {name: own.why[name] for name in ("encoding", "task") if name in own.why}
        own = trained.model_copy(
            update={
                **own_settings,
                "encoding": own.encoding,
                "keys": own.keys,
                "why": {**why, **reasons},
            }
        )
    elif not labeled and (trained is None or len(trained.text or ()) == 1):
        as_texts = guess_spec(path, given=open_task, labeled=False)
        own = as_texts if as_texts.format == "lines" else own
    if not labeled:
        why = {**own.why, "label": "not read, as labels are what is predicted"}
        own = own.model_copy(update={"label": (), "labels": None, "why": why})
    if trained is not None:
        _check_width(path, own, trained, target_kind(target, task))
    return own


def _has(path: Path, given: DataSpec, trained: DataSpec) -> bool:
    """Whether a file of JSON rows has the keys that the model was trained on."""
    if trained.format != "jsonl" or not trained.text:
        return False
    sample = take_sample(path, given.encoding)
    if not sample.filled or sample.filled[0].lstrip()[:1] not in ("{", "["):
        return False
    rows = sample_rows(sample)
    return bool(rows) and all(name in rows[0] for name in trained.text)


def _same_table(path: Path, given: DataSpec, trained: DataSpec | None) -> DataSpec | None:
    """The spec of a table whose first row names the columns that the model was trained on.

    Its rows may be too few to see that the first one is a header.
    """
    if trained is None or trained.format != "delimited" or not trained.header:
        return None
    if given.format not in (None, "delimited") or given.header is False:
        return None
    form = {name: getattr(trained, name) for name in ("format", "delimiter", "quoting", "header")}
    form |= {name: getattr(given, name) for name in given.given}
    try:
        spec = guess_spec(path, given=DataSpec(**form))
    except InputFileError:  # written in another way: guessed without the training spec
        return None
    names = spec.columns if isinstance(spec.columns, tuple) else ()
    if not all(isinstance(name, str) and name in names for name in trained.text or ()):
        return None
    columns = {"text": trained.text} if given.text is None else {}
    if given.label is None and all(name in names for name in trained.label or ()):
        columns["label"] = trained.label
    return spec.model_copy(
        update={**columns, "why": {**spec.why, **dict.fromkeys(columns, "as in training")}}
    )


def _check_width(path: Path, own: DataSpec, trained: DataSpec, kind: TargetKind | None) -> None:
    count, wanted = len(own.text or ()), len(trained.text or ())
    if kind is None or not kind.fixed_texts or count == wanted:
        return
    reads = f"{path}: the model reads {counted(wanted, 'text')} of each row"
    if own.format == "lines":
        raise InputFileError(
            f"{reads}, but a line is one text; give a table or JSON, and set --format if it is one"
        )
    fit = "1 column fits" if count == 1 else f"{count} columns fit"
    raise InputFileError(f"{reads}, but {fit}; name the columns with --text, once for each")
