"""A setting as people meet it: one declaration is an option, a form field and a line of the docs.

A settings class is a frozen dataclass or a `config.Settings`. Each of its fields that people may
set is declared once, with a `Setting` in its annotation:

    beams: Annotated[int | None, Setting("Candidates per text; 1: greedy.", BEAMS, min=1)] = None

`settings_of` reads that for whoever shows it: the command line, the forms of the service, the
reference pages. A field without a `Setting` is for Python only.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import cache
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from bertsmith.errors import ConfigError, unknown

(
    MODEL,
    DATA,
    MASKING,
    NOISE,
    TRAINING,
    WRITING,
    BEAMS,
    SAMPLING,
    FILLING,
    SERVING,
    COMPUTE,
    OUTPUT,
    LIMITS,
) = GROUPS = (
    "Model",
    "Data",
    "Masking",
    "Noise",
    "Training",
    "Writing",
    "Beams: several candidates per text, the best answer",
    "Sampling: tokens are drawn",
    "Filling: a masked LM writes",
    "Serving",
    "Compute",
    "Output",
    "Limits",
)
REQUIRED: Any = MISSING


@dataclass(frozen=True, slots=True)
class Setting:
    """What people read of a field: a short line of help, its group, its bounds.

    `flag` is how the command line spells it; if unset, "--NAME" after the field, or
    "--NAME/--no-NAME" where both mean something. `rare` ones are shown by `--help-all` only.
    """

    help: str
    group: str
    flag: str | None = None
    metavar: str | None = None
    min: float | None = None
    max: float | None = None
    rare: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingField:
    """A documented field of a settings class: its name, plain type, default and bounds.

    The bounds are those of the `Setting`, else those that pydantic checks.
    """

    name: str
    kind: Any
    default: Any
    setting: Setting
    min: float | None
    max: float | None

    @property
    def flag(self) -> str:
        """How the command line spells it."""
        spelled = self.name.replace("_", "-")
        both = self.default is True or self.kind == bool | None
        return self.setting.flag or (f"--{spelled}/--no-{spelled}" if both else f"--{spelled}")

    @property
    def holds_several(self) -> bool:
        """Whether the value is a sequence, given one by one."""
        return any(is_sequence(part) for part in _parts(self.kind))


def has_settings(kind: object) -> bool:
    """Whether this is a class whose fields are settings."""
    return isinstance(kind, type) and (is_dataclass(kind) or hasattr(kind, "model_fields"))


@cache
def settings_of(kind: type) -> tuple[SettingField, ...]:
    """The documented fields of a settings class, in their order."""
    hints = get_type_hints(kind, include_extras=True)
    return tuple(
        SettingField(
            name=name,
            kind=plain_type(hints[name]),
            default=default,
            setting=setting,
            min=_bound("min", "ge", setting, marks),
            max=_bound("max", "le", setting, marks),
        )
        for name, default, further in _fields(kind)
        for marks in [[*_marks(hints[name]), *further]]
        for setting in [setting_in(marks)]
        if setting is not None
    )


def setting_in(marks: Sequence[Any]) -> Setting | None:
    """The `Setting` among the marks of an annotation."""
    return next((mark for mark in marks if isinstance(mark, Setting)), None)


def named_setting(kind: type, name: str) -> str:
    """A setting as Python and as the command line spell it: "top_k (--top-k)"."""
    one = next(one for one in settings_of(kind) if one.name == name)
    return f"{name} ({one.flag.partition('/')[0]})"


def check_settings(settings: Any) -> None:
    """Refuse a value of another type, outside its bounds, or not finite, by the setting's name."""
    kind: type = type(settings)
    for one in settings_of(kind):
        value = getattr(settings, one.name)
        if value is None and type(None) in get_args(one.kind):
            continue
        named = named_setting(kind, one.name)
        kinds = [part for part in _parts(one.kind) if part is not type(None)]
        _check_type(named, value, kinds)
        if isinstance(value, float) and not math.isfinite(value):
            raise ConfigError(f"{named} is {value}; give a finite number")
        if one.min is not None and value < one.min:
            raise ConfigError(f"{named} is {value}; give {one.min:,} or more")
        if one.max is not None and value > one.max:
            raise ConfigError(f"{named} is {value}; give at most {one.max:,}")


def _check_type(named: str, value: Any, kinds: Sequence[Any]) -> None:
    choices = [choice for kind in kinds if get_origin(kind) is Literal for choice in get_args(kind)]
    if choices:
        if value not in choices:
            raise unknown(f"value of {named}", value, choices)
    elif any(is_sequence(kind) for kind in kinds):
        if isinstance(value, str) or not all(isinstance(one, str) for one in value):
            raise ConfigError(f"{named} must be a list of texts, not {value!r:.60}")
    elif bool in kinds:
        if value not in (True, False):
            raise ConfigError(f"{named} must be True or False, not {value!r:.60}")
    else:
        plain = (*kinds, int) if float in kinds else tuple(kinds)
        if isinstance(value, bool) or not isinstance(value, plain):
            wanted = " or ".join(kind.__name__ for kind in plain)
            raise ConfigError(f"{named} must be {wanted}, not {value!r:.60}")


def plain_type(hint: Any) -> Any:
    """A type without its marks, at any depth."""
    origin, parts = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return plain_type(parts[0])
    if origin in (Union, UnionType):
        return Union[tuple(plain_type(part) for part in parts)]  # noqa: UP007 - built, not written
    if origin in (list, tuple, Sequence):
        return origin[tuple(part if part is Ellipsis else plain_type(part) for part in parts)]
    return hint


def _parts(kind: Any) -> Sequence[Any]:
    """The types of a union, or the type alone."""
    return get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)


def is_sequence(kind: Any) -> bool:
    """Whether a type is a list, a tuple or any sequence of values."""
    return get_origin(kind) in (list, tuple, Sequence)


def _fields(kind: type) -> Iterator[tuple[str, Any, Sequence[Any]]]:
    """Name, default and further marks of each field."""
    of_pydantic = getattr(kind, "model_fields", None)
    if of_pydantic is None:
        for one in fields(kind):
            yield one.name, one.default, ()
        return
    for name, info in of_pydantic.items():
        yield name, REQUIRED if info.is_required() else info.default, info.metadata


def _marks(hint: Any) -> Iterator[Any]:
    """Everything that annotations hold next to a type, those of its parts included."""
    if get_origin(hint) is Annotated:
        inner, *marks = get_args(hint)
        for mark in marks:
            yield mark
            yield from getattr(mark, "metadata", ())  # a Field of pydantic
        yield from _marks(inner)
    elif get_origin(hint) in (Union, UnionType):
        for part in get_args(hint):
            yield from _marks(part)


def _bound(own: str, other: str, setting: Setting, marks: Sequence[Any]) -> float | None:
    """A bound that the setting names, or the one that pydantic checks."""
    named: float | None = getattr(setting, own)
    found = (getattr(mark, other, None) for mark in marks)
    return named if named is not None else next((one for one in found if one is not None), None)
