"""Train, dev and test: from a folder that has them, or from one file split for good."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bertsmith.errors import ConfigError, InputFileError
from bertsmith.labeled.account import RowAccount
from bertsmith.labeled.example import Example, Label, LabelSet, Tagged
from bertsmith.labeled.guess.guess_spec import guess_spec
from bertsmith.labeled.read.reader import OnError, read_examples
from bertsmith.labeled.spec import DataSpec
from bertsmith.labeled.split.split_files import SPLIT_RECORD, split_files
from bertsmith.labeled.split.split_record import load_record, make_record, recalled
from bertsmith.labeled.split.stratify import SPLITS, Shares, assign, check_shares, usual_group

USUAL: Shares = (0.8, 0.1, 0.1)


@dataclass(slots=True)
class Splits:
    """The rows of a data set by what they are for, and how they were read."""

    train: list[Example] = field(default_factory=list)
    dev: list[Example] = field(default_factory=list)
    test: list[Example] = field(default_factory=list)
    specs: dict[str, DataSpec] = field(default_factory=dict)
    accounts: dict[str, RowAccount] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    """What a user should know, in plain sentences."""


def load_splits(
    data: Path,
    spec: DataSpec | None = None,
    *,
    seed: int = 0,
    shares: Sequence[float] = USUAL,
    on_error: OnError = "stop",
    saved: Path | None = None,
    also: Mapping[str, Path] | None = None,
) -> Splits:
    """Read a folder of train, dev and test files in any usual spelling, or split one file.

    One file is split by labels (scores by quantiles, questions by article); the split is saved,
    by default to FILE.split.json, and used again as long as the file is the same. A folder without
    a dev file gets one from the training rows, in the same way. `also` names the files of dev or
    test that lie elsewhere.
    """
    parts = check_shares(shares)
    given = spec or DataSpec()
    unused: list[str] = []
    files = {"train": data}
    if data.is_dir():
        files, unused = split_files(data)
    files |= also or {}
    splits = Splits()
    if unused:
        splits.notes.append(f"files not used: {', '.join(unused)}")
    _read(splits, "train", files["train"], guess_spec(files["train"], given=given), on_error)
    for name in ("dev", "test"):
        if name in files:
            _read(splits, name, files[name], _spec_of(files[name], given, splits), on_error)
    _cut(splits, files, parts, seed=seed, saved=saved)
    return splits


def _read(splits: Splits, name: str, path: Path, spec: DataSpec, on_error: OnError) -> None:
    rows = read_examples(path, spec, on_error=on_error)
    examples = list(rows)
    if name != "test" and spec.label != ():
        labeled = [example for example in examples if example.target is not None]
        if len(labeled) < len(examples):
            left = len(examples) - len(labeled)
            splits.notes.append(f"{path.name}: {left:,} rows without a label left out")
        examples = labeled
    if name != "test" and not any(example.target is not None for example in examples):
        raise InputFileError(f"{path}, line 1: no row has a label; name its column with --label")
    getattr(splits, name).extend(examples)
    splits.specs[name] = spec
    splits.accounts[name] = rows.account
    splits.notes += [f"{path.name}: {note}" for note in rows.account.notes()]
    if rows.account.rows_rejected:
        splits.notes.append(f"{path.name}: {rows.account.rows_rejected:,} rows rejected")


def _spec_of(path: Path, given: DataSpec, splits: Splits) -> DataSpec:
    """The spec of a dev or test file: that of the training file, if it has the same form."""
    train = splits.specs["train"]
    open_task = given if given.task else given.model_copy(update={"task": train.task})
    own = guess_spec(path, given=open_task)
    alike = own.format == train.format and own.columns == train.columns
    if alike and not (own.label == () and train.label):
        own = train.model_copy(update={"encoding": own.encoding})
    if train.format not in ("squad", "c3") and len(own.text or ()) != len(train.text or ()):
        raise InputFileError(
            f"{path}: {len(own.text or ())} text columns, but the training file has "
            f"{len(train.text or ())}; name them with --text"
        )
    if given.labels is None and own.label != () and (labels := _labels(splits.train)):
        why = {**own.why, "labels": f"of {Path(splits.train[0].source).name}"}
        own = own.model_copy(update={"labels": labels, "why": why})
    return own


def _labels(examples: Sequence[Example]) -> tuple[str, ...]:
    """Every label of the training rows."""
    labels: set[str] = set()
    for example in examples:
        target = example.target
        if isinstance(target, Label):
            labels.add(target.name)
        elif isinstance(target, LabelSet):
            labels.update(target.names)
        elif isinstance(target, Tagged):
            labels.update(tag[2:] if tag[1:2] == "-" else tag for tag in target.tags if tag != "O")
    return tuple(sorted(labels))


def _cut(
    splits: Splits, files: dict[str, Path], shares: Shares, *, seed: int, saved: Path | None
) -> None:
    """Take the missing parts from the training rows."""
    _, dev, test = shares
    if "dev" in files:
        dev = 0.0
    if "test" in files or files.keys() > {"train"}:
        test = 0.0
    if dev == test == 0.0:
        return
    path = files["train"]
    wanted: Shares = (1 - dev - test, dev, test)
    place = saved or path.with_name(path.name + SPLIT_RECORD)
    rows = splits.train
    if place.exists():
        record = load_record(place)
        if (record.seed, record.shares) != (seed, wanted):
            raise ConfigError(
                f"{place} was made with seed {record.seed} and shares {record.shares}, not "
                f"with seed {seed} and {wanted}; give those, or delete it to split anew"
            )
        whose = recalled(record, place, path, rows)
        splits.notes.append(f"{path.name} is split as recorded in {place.name}")
    else:
        whose = assign(rows, seed=seed, shares=wanted, group=_group(splits))
        make_record(path, rows, whose, seed=seed, shares=wanted).save(place)
        splits.notes.append(f"{path.name} was split; {place.name} records how")
    for number, name in enumerate(SPLITS):
        if number == 0 or wanted[number]:
            chosen = [row for row, part in zip(rows, whose, strict=True) if part == number]
            setattr(splits, name, chosen)


def _group(splits: Splits) -> str | None:
    group = splits.specs["train"].group
    if group is not None:
        return group if isinstance(group, str) else f"column {group}"
    return usual_group(splits.train)
