"""Files of sources and targets, or of similar texts: which columns, which rows, which split."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from bertsmith.errors import ConfigError, InputFileError
from bertsmith.labeled.pairs.pairs import SentenceData, positive_label, read_sentences, split_dev
from bertsmith.labeled.read.reader import OnError
from bertsmith.labeled.spec import DataSpec
from bertsmith.labeled.split.splits import split_files
from bertsmith.wording import counted

SIDES = ("train", "dev", "test")
Reader = Callable[[Path, DataSpec], SentenceData]


@dataclass(frozen=True, slots=True, kw_only=True)
class PairSplits:
    """Pairs of texts by what they are for; a side without a file is None."""

    train: SentenceData
    dev: SentenceData
    test: SentenceData | None = None
    notes: tuple[str, ...] = ()

    def sides(self) -> list[SentenceData]:
        """All there are."""
        return [one for one in (self.train, self.dev, self.test) if one is not None]


@dataclass(frozen=True, slots=True, kw_only=True)
class PairFiles:
    """Where pairs are read from, and how.

    `data` is a file, or a folder of train, dev and test files; `also` names others. `shares` are
    those of train, dev and test where one file has all rows.
    """

    data: Path
    spec: DataSpec
    on_error: OnError = "stop"
    also: Mapping[str, Path] | None = None
    shares: Sequence[float] = (0.8, 0.1, 0.1)
    split_seed: int = 0


def evenly(data: SentenceData, count: int) -> SentenceData:
    """At most so many rows from all over a file, whose parts may be of different kinds."""
    if len(data) <= count:
        return data
    return data.some([number * len(data) // count for number in range(count)])


def read_written(files: PairFiles) -> PairSplits:
    """Sources and targets: the first text column and the second, or --text and --label."""
    return read_sides(files, lambda path, spec: written_rows(path, spec, files.on_error))


def read_similar(files: PairFiles, *, positive: str | None = None) -> PairSplits:
    """Pairs that say the same: all rows of pairs, the positive ones where rows have labels."""
    return read_sides(files, lambda path, spec: similar_rows(path, spec, files.on_error, positive))


def written_rows(path: Path, spec: DataSpec, on_error: OnError = "stop") -> SentenceData:
    """The sources and targets of one file."""
    given = spec.model_copy(update={"task": None, "target": None})
    if given.label and len(given.text or ()) == 1:
        given = given.model_copy(update={"text": (*(given.text or ()), *given.label)})
    given = given.model_copy(update={"label": ()})
    try:
        data = read_sentences(path, kind="pairs", spec=given, on_error=on_error)
    except ConfigError as fault:
        raise ConfigError(
            f"{path}: writing needs a column of sources and one of targets ({fault}); name both: "
            "--text SOURCE --text TARGET"
        ) from fault
    return data


def similar_rows(
    path: Path, spec: DataSpec, on_error: OnError = "stop", positive: str | None = None
) -> SentenceData:
    """The pairs of one file whose texts say the same."""
    given = spec.model_copy(update={"task": None, "target": None})
    data = read_sentences(path, spec=given, on_error=on_error)
    if data.kind == "labels":
        name = positive_label(data, positive)
        if name is None:
            raise ConfigError(
                f"{path}: which of the labels {', '.join(data.labels[:8])} means that two texts "
                "say the same? Set data.positive"
            )
        wanted = data.labels.index(name)
        numbers = [] if data.targets is None else (data.targets == wanted).nonzero()[0].tolist()
        note = f"{path.name}: {len(numbers):,} of {len(data):,} pairs have the label {name}"
        data = replace(data.some(numbers), notes=(*data.notes, note))
    elif data.kind != "pairs":
        raise ConfigError(
            f"{path} holds {data.kind} ({data.why}); similar sentences need pairs of texts that "
            "say the same, or pairs with a label; name the columns with --text and --label"
        )
    return _without_copies(path, data)


def _without_copies(path: Path, data: SentenceData) -> SentenceData:
    """Leave out pairs of a text with itself, of which a model would learn to copy."""
    numbers = [n for n, (one, other) in enumerate(data.rows) if one.strip() != other.strip()]
    if not numbers:
        raise InputFileError(f"{path}: no pair of different texts that say the same")
    left = len(data) - len(numbers)
    if not left:
        return data
    note = f"{path.name}: {counted(left, 'pair')} of a text with itself left out"
    return replace(data.some(numbers), notes=(*data.notes, note))


def read_sides(files: PairFiles, read: Reader) -> PairSplits:
    """The rows of each side as `read` reads a file; what has no file is split off."""
    unused: list[str] = []
    paths = {"train": files.data}
    if files.data.is_dir():
        paths, unused = split_files(files.data)
    paths |= files.also or {}
    sides: dict[str, SentenceData | None] = dict.fromkeys(SIDES)
    for name in SIDES:
        if name in paths:
            own = files.spec
            alike = paths[name].suffixes == paths.get("train", files.data).suffixes
            if name != "train" and paths[name] in (files.also or {}).values() and not alike:
                own = DataSpec(encoding=files.spec.encoding)  # of another format: by itself
            sides[name] = read(paths[name], own)
    notes = [f"files not used: {', '.join(unused)}"] if unused else []
    return _split(files, sides, notes)


def _split(
    files: PairFiles, sides: Mapping[str, SentenceData | None], notes: list[str]
) -> PairSplits:
    """Take dev and test rows from the training rows, where no file has them."""
    train, dev, test = (sides[name] for name in SIDES)
    if train is None:
        raise InputFileError(f"{files.data}: there are no training rows")
    shares = dict(zip(SIDES, files.shares, strict=True))
    alone = dev is None and test is None
    if dev is None:
        dev, train = _taken(train, shares["dev"], files, "dev")
    if alone and shares["test"]:
        share = shares["test"] / (shares["train"] + shares["test"])
        test, train = _taken(train, share, files, "test")
    if alone:
        parts = [f"{len(train):,} train", f"{len(dev):,} dev", f"{len(test or ()):,} test"]
        notes.append(
            f"the file was split ({', '.join(parts)} rows); rows with the same first text stay on "
            "one side"
        )
    return PairSplits(train=train, dev=dev, test=test, notes=tuple(notes))


def _taken(
    data: SentenceData, share: float, files: PairFiles, name: str
) -> tuple[SentenceData, SentenceData]:
    rest, part = split_dev(data, share, files.split_seed)
    if not len(rest):
        raise InputFileError(
            f"{data.source}: {len(data):,} rows with different sources are too few for {name} rows "
            f"of their own; give more rows, or a file with --{name}"
        )
    return part, rest
