"""Train, dev and test: from a folder that has them, or from one file split for good."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import ValidationError

from bertsmith.config import Settings
from bertsmith.errors import ConfigError, InputFileError
from bertsmith.files.atomic_file import write_staged
from bertsmith.files.digest import file_digest
from bertsmith.files.not_text import check_regular
from bertsmith.files.streams import packing_of, unreadable
from bertsmith.labeled.example import Example, Label, LabelSet, Tagged
from bertsmith.labeled.guess.conll import ENDINGS as CONLL
from bertsmith.labeled.guess.guess_spec import guess_spec
from bertsmith.labeled.read.reader import ENDING as REJECTED
from bertsmith.labeled.read.reader import OnError, read_examples
from bertsmith.labeled.read.reject import RowAccount
from bertsmith.labeled.spec import DataSpec
from bertsmith.labeled.split.stratify import SPLITS, Shares, assign, check_shares, usual_group
from bertsmith.wording import shown

SPELLINGS: Mapping[str, tuple[str, ...]] = {
    "train": ("train", "training"),
    "dev": ("dev", "valid", "validation", "val", "development", "testa"),
    "test": ("test", "testing", "testb"),
}
ENDINGS = (".tsv", ".csv", ".txt", ".jsonl", ".ndjson", ".json", *CONLL)
SPLIT_ENDINGS = ("all", *(word for words in SPELLINGS.values() for word in words))
SPLIT_RECORD = ".split.json"
PARTS = re.compile(r"[-_. ]+")


def split_files(folder: Path) -> tuple[dict[str, Path], list[str]]:
    """Files by "train", "dev" and "test", and the names of those that are not used.

    A folder with one data file gives it as "train" alone.
    """
    files = [path for path in sorted(folder.iterdir()) if _is_data(path)]
    splits = {name: path for name in SPELLINGS if (path := _chosen(name, files, folder))}
    if not splits and len(files) == 1:
        splits = {"train": files[0]}
    if "train" not in splits:
        names = ", ".join(path.name for path in files[:10]) or "none"
        raise InputFileError(
            f"{folder}: no file is called train (train.tsv, .csv, .jsonl, .txt ..., or x.train); "
            f"files that could hold rows: {names}; rename one, or give the file itself"
        )
    return splits, [path.name for path in files if path not in splits.values()]


def _is_data(path: Path) -> bool:
    name = path.name.lower()
    if name.startswith(".") or name.endswith((REJECTED, SPLIT_RECORD)) or not path.is_file():
        return False
    bare = name.removesuffix(packing_of(path))
    return _stem(name) != name or ("." in bare and bare.rpartition(".")[2] in SPLIT_ENDINGS)


def _stem(name: str) -> str:
    """A name without the endings of data files; the name itself if it has none."""
    bare = name.removesuffix(packing_of(Path(name)))
    for ending in sorted(ENDINGS, key=len, reverse=True):
        if bare.endswith(ending) and bare != ending:
            return bare.removesuffix(ending)
    return name


def _chosen(split: str, files: list[Path], folder: Path) -> Path | None:
    """The one file of a split: named so and no more, or with the word among others."""
    words = SPELLINGS[split]
    exact = [path for path in files if _stem(path.name.lower()) in words]
    named = exact or [path for path in files if _names(path) == {split}]
    # MNLI has two of each: within the genres of the training rows, and outside.
    if len(named) > 1:
        matched = [path for path in named if "matched" in PARTS.split(_stem(path.name.lower()))]
        named = matched if len(matched) == 1 else named
    if len(named) > 1:
        several = ", ".join(path.name for path in named)
        raise InputFileError(
            f"{folder}: {several} could all be the {split} file; keep one in the folder, or call "
            f"it {split}{named[0].suffix}"
        )
    return named[0] if named else None


def _names(path: Path) -> set[str]:
    """The splits whose words stand in a file's name."""
    parts = set(PARTS.split(_stem(path.name.lower())))
    return {split for split, words in SPELLINGS.items() if parts & set(words)}


MANY_ROWS = 20  # from so many rows on, labels must repeat
OWN_LABELS = 0.9  # the part of them that may differ
LARGEST = 200_000_000  # bytes


class SplitRecord(Settings):
    """Which rows of a file are for development and testing; all others are for training."""

    file: str
    sha256: str
    rows: int
    seed: int
    shares: Shares
    key: str
    """What the rows are named by: "line", "id", or "row", their number from 0."""
    dev: tuple[int | str, ...]
    test: tuple[int | str, ...]

    def save(self, path: Path) -> None:
        """Write the record, whole or not at all."""
        text = json.dumps(self.model_dump(mode="json"), ensure_ascii=False)
        write_staged(path, text.encode("utf-8", "surrogatepass") + b"\n")


def make_record(
    path: Path, examples: Sequence[Example], whose: Sequence[int], *, seed: int, shares: Shares
) -> SplitRecord:
    """The record of a split; rows are named by what distinguishes them."""
    key = key_of(examples)
    names = names_of(examples, key)
    return SplitRecord(
        file=path.name,
        sha256=file_digest(path),
        rows=len(examples),
        seed=seed,
        shares=shares,
        key=key,
        dev=tuple(name for name, part in zip(names, whose, strict=True) if part == 1),
        test=tuple(name for name, part in zip(names, whose, strict=True) if part == 2),
    )


def key_of(examples: Sequence[Example]) -> str:
    """Lines where each row has its own, else ids, else the numbers of rows."""
    for key in ("line", "id"):
        names = names_of(examples, key)
        if len(set(names)) == len(names):
            return key
    return "row"


def names_of(examples: Sequence[Example], key: str) -> list[int | str]:
    """What the rows are called by a key."""
    if key == "line":
        return [example.line for example in examples]
    return [example.id for example in examples] if key == "id" else list(range(len(examples)))


def load_record(path: Path) -> SplitRecord:
    """A saved split."""
    try:
        check_regular(path)
        if path.stat().st_size > LARGEST:
            raise InputFileError(f"{path} is no saved split: it has {path.stat().st_size:,} bytes")
        return SplitRecord.model_validate_json(path.read_bytes())
    except OSError as error:
        raise unreadable(path, error) from error
    except ValidationError as error:
        fault = error.errors()[0]
        where = ".".join(str(part) for part in fault["loc"]) or "the document"
        raise InputFileError(
            f"{path} is no saved split ({where}: {fault['msg']}); delete it to make a new one"
        ) from None


def recalled(
    record: SplitRecord, saved: Path, path: Path, examples: Sequence[Example]
) -> list[int]:
    """0, 1 or 2 for each example as the record says; refused if the file is another one."""
    if (digest := file_digest(path)) != record.sha256:
        raise InputFileError(
            f"{path} has changed since {saved} was made (sha256 {record.sha256[:12]}..., now "
            f"{digest[:12]}...); bring the old file back, or delete {saved.name} to split anew: "
            "results before and after are then not comparable"
        )
    names = names_of(examples, record.key)
    dev, test = set(record.dev), set(record.test)
    unknown = (dev | test) - set(names)
    if unknown or len(names) != record.rows:
        raise InputFileError(
            f"{saved} was made from {record.rows:,} rows of {path}, now {len(names):,} are read; "
            "read it with the settings of that time, or delete it to split anew"
        )
    return [1 if name in dev else 2 if name in test else 0 for name in names]


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
        raise InputFileError(f"{path}, line 1: {_why_unlabeled(spec)}")
    if name == "train":
        _refuse_own_labels(path, spec, examples)
    getattr(splits, name).extend(examples)
    splits.specs[name] = spec
    splits.accounts[name] = rows.account
    splits.notes += [f"{path.name}: {note}" for note in rows.account.notes()]
    if rows.account.rows_rejected:
        splits.notes.append(f"{path.name}: {rows.account.rows_rejected:,} rows rejected")


def _refuse_own_labels(path: Path, spec: DataSpec, examples: Sequence[Example]) -> None:
    """Refuse a label column that can be none: nearly every row has another label."""
    names = [e.target.name for e in examples if isinstance(e.target, Label)]
    different = len(set(names))
    if len(names) >= MANY_ROWS and different > OWN_LABELS * len(names):
        column = ", ".join(map(str, spec.label or ()))
        raise InputFileError(
            f"{path}: column {column} holds {different:,} different labels in {len(names):,} rows, "
            f"such as {shown(names[0])}; is it the label column? name it with --label, or set "
            "--task regress if it holds scores"
        )


def _why_unlabeled(spec: DataSpec) -> str:
    if spec.format != "lines":
        return "no row has a label; name its column with --label"
    return (
        f"each line is read as one text without a label ({spec.why.get('format', 'as set')}); put "
        "a tab between label and text, or set --format labeled-lines for a label, a space and a "
        "text, or --delimiter"
    )


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
