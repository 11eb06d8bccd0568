"""Settings as frozen, strict models, and what turns TOML and overrides into them."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Self, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic_core import PydanticSerializationError, to_jsonable_python

from bertsmith.errors import ConfigError, unknown

Tree = dict[str, Any]
S = TypeVar("S", bound="Settings")

Count = Annotated[int, Field(gt=0)]
# In the files of a model: beyond them no machine holds it, and sizes are multiplied without care.
Width = Annotated[int, Field(gt=0, le=1 << 20)]  # columns
Depth = Annotated[int, Field(gt=0, le=1_000)]  # layers
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, lt=1)]  # of something that must not be used up
Fraction = Annotated[float, Field(ge=0, le=1)]

LARGEST_FILE = 1_000_000  # bytes; a recipe is a page of text
EXTENDS = "extends"
CHOOSERS = ("kind", "name")  # keys that say which of several tables this is
BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
BARE_WORD = re.compile(r"[A-Za-z_./~][\w./~+ -]*")


class Settings(BaseModel):
    """The root of all settings: frozen, no unknown keys, no silent conversions, finite numbers."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


def named_by_kind(what: str, table: Mapping[str, Any]) -> BeforeValidator:
    """Lets `"span"` stand for `{kind = "span"}`, and lists the known names otherwise."""

    def read(value: object) -> object:
        named = value.get("kind") if isinstance(value, dict) else value
        if isinstance(named, str) and named not in table:
            raise ValueError(str(unknown(what, named, table)))
        return {"kind": value} if isinstance(value, str) else value

    return BeforeValidator(read)


def read_toml(path: Path) -> Tree:
    """The tables of a TOML file; errors name the file and the line."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror or error}") from error
    if len(content) > LARGEST_FILE:
        raise ConfigError(f"{path} has {len(content):,} bytes; that is no file of settings")
    try:
        return tomllib.loads(content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise ConfigError(
            f"{path} is not UTF-8 (byte {error.start:,}); save it as UTF-8"
        ) from error
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ConfigError(f"{path} is not TOML: {error}") from error


@dataclass(frozen=True, slots=True)
class Layer:
    """Settings as read from a file, their place for errors, and the folder that holds them."""

    tree: Tree
    place: str
    folder: Path

    @classmethod
    def of_file(cls, path: Path) -> Layer:
        """A whole TOML file."""
        return cls(read_toml(path), str(path.resolve()), path.parent)


def merge_layers(layer: Layer, find: Callable[[str, Path], Layer]) -> Tree:
    """A layer laid over the one that its key `extends` names, and so on.

    `find(name, folder)` gives the layer of a name that stands in a file of that folder.
    """
    layers: list[Tree] = []
    places: list[str] = []
    while True:
        if layer.place in places:
            chain = " extends ".join([*places[places.index(layer.place) :], layer.place])
            raise ConfigError(f"recipes extend each other in a circle: {chain}")
        places.append(layer.place)
        parent = layer.tree.get(EXTENDS)
        layers.append({key: value for key, value in layer.tree.items() if key != EXTENDS})
        if parent is None:
            break
        if not isinstance(parent, str):
            raise ConfigError(
                f'{layer.place}: {EXTENDS} is {parent!r}; write a name or a path in "quotes"'
            )
        layer = find(parent, layer.folder)
    merged: Tree = {}
    for tree in reversed(layers):
        merged = overlaid(merged, tree)
    return merged


def overlaid(below: Mapping[str, Any], above: Mapping[str, Any]) -> Tree:
    """Two trees as one: tables are joined, everything else of `above` replaces what is below.

    A table that says it is of another kind replaces the old one whole: the settings of one
    optimizer mean nothing to another.
    """
    joined = dict(below)
    for key, value in above.items():
        old = joined.get(key)
        if isinstance(old, Mapping) and isinstance(value, Mapping) and not _other(old, value):
            joined[key] = overlaid(old, value)
        else:
            joined[key] = value
    return joined


def _other(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    return any(key in new and key in old and new[key] != old[key] for key in CHOOSERS)


@dataclass(frozen=True, slots=True)
class Override:
    """A setting that is laid over others, by its dotted name: Override("plan.epochs", 2.0)."""

    name: str
    value: Any

    @classmethod
    def parse(cls, text: str) -> Self:
        """One of the command line, "section.key=value", the value as TOML writes it.

        What is no TOML value but looks like a word or a path is text: `model.size=mini`.
        """
        name, equals, value = text.partition("=")
        keys = [key.strip() for key in name.split(".")]
        if not equals or not all(BARE_KEY.fullmatch(key) for key in keys):
            raise ConfigError(f"{text!r} is no setting; write section.key=value")
        return cls(".".join(keys), _value(value.strip(), text))

    def __str__(self) -> str:
        """As the command line spells it."""
        value = self._plain()
        return f"{self.name}={'null' if value is None else _literal(value)}"

    def layer(self) -> Tree:
        """The tree that holds nothing else."""
        keys = self.name.split(".")
        if not all(BARE_KEY.fullmatch(key) for key in keys):
            raise ConfigError(f"{self.name!r} is the name of no setting; write section.key")
        layer: Tree = {keys[-1]: self._plain()}
        for key in reversed(keys[:-1]):
            layer = {key: layer}
        return layer

    def _plain(self) -> Any:
        """The value as TOML could have it: settings as tables, paths as texts."""
        if isinstance(self.value, date | time):  # refused with its place
            return self.value
        try:
            return to_jsonable_python(self.value, inf_nan_mode="constants")
        except PydanticSerializationError:
            raise ConfigError(f"{self.name} is {self.value!r:.60}; no setting is one") from None


def overrides_of(settings: Mapping[str, Any] | None) -> list[Override]:
    """Settings by name, as Python takes them, {"plan.epochs": 2.0}; None gives none."""
    return [Override(name, value) for name, value in (settings or {}).items()]


Overrides = Sequence[Override | str]
"""Settings to lay over others, typed, or as the command line spells them."""


def overridden(tree: Mapping[str, Any], overrides: Overrides) -> Tree:
    """The tree with settings laid over it, in their order; texts are parsed first."""
    for one in overrides:
        found = Override.parse(one) if isinstance(one, str) else one
        tree = overlaid(tree, found.layer())
    return dict(tree)


def _value(text: str, override: str) -> Any:
    try:
        tree = tomllib.loads(f"value = {text}")
        if list(tree) == ["value"]:
            return tree["value"]
    except (tomllib.TOMLDecodeError, RecursionError):
        if BARE_WORD.fullmatch(text):
            return text
    raise ConfigError(f'{override!r}: {text!r} is not a value; write 1e-4, true, [1, 2] or "text"')


def validated(kind: type[S], tree: Mapping[str, Any], source: str) -> S:
    """Settings from a tree; every fault is named with its place, value and what is expected."""
    if not isinstance(tree, Mapping):
        raise ConfigError(f"{source} is {_shown(tree)}; it must be a table of settings")
    for path, value in _leaves(tree):
        if isinstance(value, date | datetime | time):
            raise ConfigError(f"{source}: {path} is the date {value}; no setting is one")
        if isinstance(value, int) and abs(value) >= 2**63:
            raise ConfigError(f"{source}: {path} is {value}; that number is too large")
    try:
        # By way of JSON, strict means strict but arrays may be tuples and strings may be paths.
        return kind.model_validate_json(json.dumps(tree))
    except ValidationError as error:
        faults = [_fault(kind, tree, dict(fault)) for fault in error.errors()]
        raise ConfigError(
            "\n".join(f"{source}: {fault}" for fault in dict.fromkeys(faults))
        ) from None


def changed(settings: S, changes: Mapping[str, Any]) -> S:
    """A copy with other values by dotted name ("plan.epochs"), checked like settings of a file.

    pydantic's `model_copy` checks nothing. A value may be a group of settings, which replaces the
    old group whole.
    """
    tree = settings.model_dump(mode="json")
    for path, value in changes.items():
        *groups, key = path.split(".")
        table = tree
        for group in groups:
            table = table[group]
        table[key] = to_jsonable_python(value)
    return validated(type(settings), tree, f"{type(settings).__name__} with {', '.join(changes)}")


def to_toml(settings: Settings) -> str:
    """Settings as TOML that reads back as the same settings."""
    return tree_to_toml(settings.model_dump(mode="json", exclude_none=True))


def tree_to_toml(tree: Mapping[str, Any]) -> str:
    """Tables and plain values as TOML that reads back as the same tree."""
    return "\n".join(_table(tree, ())).strip() + "\n"


def differences(old: Settings, new: Settings) -> list[str]:
    """What changed between two groups of settings, as "section.key: old -> new"."""
    before = dict(_leaves(old.model_dump(mode="json")))
    after = dict(_leaves(new.model_dump(mode="json")))
    return [
        f"{path}: {_shown(before.get(path))} -> {_shown(after.get(path))}"
        for path in dict.fromkeys([*before, *after])
        if before.get(path) != after.get(path)
    ]


def _leaves(tree: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in tree.items():
        path = f"{prefix}{key}"
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{path}.")
        elif isinstance(value, list) and any(isinstance(item, Mapping) for item in value):
            for number, item in enumerate(value):
                yield from _leaves({str(number): item}, f"{path}.")
        else:
            yield path, value


def _fault(kind: type[Settings], tree: Mapping[str, Any], fault: dict[str, Any]) -> str:
    """One fault of pydantic's list as a sentence with a way out."""
    keys = _keys(tree, fault["loc"], missing=fault["type"] == "missing")
    path = ".".join(keys)
    if fault["type"] == "extra_forbidden":
        home = "".join(f"{key}." for key in keys[:-1])
        known = [f"{home}{name}" for name in _fields_at(kind, fault["loc"][:-1])]
        return str(unknown("setting", path, known))
    if fault["type"] == "missing":
        return f"{path} is missing; it must be given"
    message: str = fault["msg"].removeprefix("Value error, ").removeprefix("Input ")
    if fault["type"] == "value_error":  # raised by us, as a sentence of its own
        return f"{path}: {message}" if path else message
    return f"{path} is {_shown(fault.get('input'))}; it {message}"


def _keys(tree: Any, loc: Sequence[str | int], *, missing: bool) -> list[str]:
    """The keys of a place as the file spells them: names of union members are left out."""
    keys: list[str] = []
    for part in loc:
        if isinstance(tree, Mapping) and part in tree:
            tree = tree[str(part)]
        elif isinstance(tree, Sequence) and isinstance(part, int) and part < len(tree):
            tree = tree[part]
        else:
            continue
        keys.append(str(part))
    return [*keys, str(loc[-1])] if missing else keys


def _fields_at(kind: type[BaseModel], loc: Sequence[str | int]) -> list[str]:
    """The names of the settings at a place."""
    here: list[type[BaseModel]] = [kind]
    for part in loc:
        below = [model.model_fields[part] for model in here if part in model.model_fields]
        if below:
            here = [model for field in below for model in _models(field.annotation)]
    return list(dict.fromkeys(name for model in here for name in model.model_fields))


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    elif get_origin(annotation) is not None or isinstance(annotation, UnionType | type(Union)):
        for part in get_args(annotation):
            yield from _models(part)


def _shown(value: object) -> str:
    text = "unset" if value is None else json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 80 else text[:77] + "..."


def _table(tree: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[str]:
    plain = {key: value for key, value in tree.items() if not isinstance(value, Mapping)}
    if path and (plain or not tree):
        yield f"\n[{'.'.join(map(_key, path))}]"
    for key, value in plain.items():
        yield f"{_key(key)} = {_literal(value)}"
    for key, value in tree.items():
        if isinstance(value, Mapping):
            yield from _table(value, (*path, key))


def _key(key: str) -> str:
    return key if BARE_KEY.fullmatch(key) else _literal(key)


def _literal(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        # JSON's escapes are TOML's, but for the one character that JSON leaves bare.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_key(k)} = {_literal(v)}" for k, v in value.items()) + "}"
    if isinstance(value, Sequence):
        return "[" + ", ".join(_literal(item) for item in value) + "]"
    if isinstance(value, int | float):
        return repr(value)  # inf and nan are spelled alike in both languages
    raise ConfigError(f"{value!r} cannot be written as TOML")
