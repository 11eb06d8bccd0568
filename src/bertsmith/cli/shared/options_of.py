"""The options of a command, made of the settings classes in its signature."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import typer

from bertsmith.errors import ConfigError
from bertsmith.setting import (
    GROUPS,
    REQUIRED,
    SettingField,
    has_settings,
    is_sequence,
    setting_in,
    settings_of,
)

LARGEST = 2**63  # what compiled code takes for a number


def spread(command: Callable[..., None]) -> Callable[..., None]:
    """The command as typer reads it: parameters of settings classes are replaced by their fields.

    Options are ordered by their group, as `GROUPS` lists them; within a group they keep their
    order. `settings` of the result holds the documented fields by name, `rare` the names of those
    that only `--help-all` shows.
    """
    hints = get_type_hints(command, include_extras=True)
    own = inspect.signature(command).parameters
    groups = {name: hints[name] for name in own if has_settings(hints[name])}
    shown: dict[str, tuple[inspect.Parameter, SettingField | None]] = {}
    found: list[tuple[str, tuple[inspect.Parameter, SettingField | None]]]
    for name, parameter in own.items():
        if name in groups:
            found = [(one.name, (_option(one), one)) for one in settings_of(groups[name])]
        else:
            found = [(name, _single(name, hints[name], parameter.default))]
        twice = next((one for one, _ in found if one in shown), None)
        if twice is not None:
            raise TypeError(f"{command.__name__} has two settings called {twice}")
        shown |= found

    @functools.wraps(command)
    def run(**values: Any) -> None:  # typer calls by name, whatever the names are
        for name, value in values.items():
            if isinstance(value, int) and abs(value) >= LARGEST:
                raise ConfigError(f"--{name.replace('_', '-')} {value}: the number is too large")
        for name, group in groups.items():
            given = {one.name: values.pop(one.name) for one in settings_of(group)}
            values[name] = settings_from(group, given)
        command(**values)

    parameters = sorted((one for one, _ in shown.values()), key=_group)
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    documented = {name: one for name, (_, one) in shown.items() if one is not None}
    run.settings = documented  # type: ignore[attr-defined]
    run.rare = frozenset(  # type: ignore[attr-defined]
        name for name, one in documented.items() if one.setting.rare
    )
    return run


def settings_from(kind: type, given: Mapping[str, Any]) -> Any:
    """Settings from the values of options; what was not given keeps its default."""
    values = {name: value for name, value in given.items() if value is not None}
    if hasattr(kind, "model_fields"):
        from pydantic_core import to_jsonable_python

        from bertsmith.config import validated

        return validated(kind, to_jsonable_python(values), "options")
    several = {one.name for one in settings_of(kind) if _is_tuple(one)}
    return kind(
        **{name: tuple(value) if name in several else value for name, value in values.items()}
    )


def _single(name: str, hint: Any, default: Any) -> tuple[inspect.Parameter, SettingField | None]:
    """A parameter of its own: a setting, or an argument of typer."""
    marks = get_args(hint)[1:] if get_origin(hint) is Annotated else ()
    setting = setting_in(marks)
    if setting is None:
        return _parameter(name, hint, default), None
    one = SettingField(
        name=name,
        kind=get_args(hint)[0],
        default=REQUIRED if default is inspect.Parameter.empty else default,
        setting=setting,
        min=setting.min,
        max=setting.max,
    )
    return _option(one), one


def _option(one: SettingField) -> inspect.Parameter:
    """A documented field as typer reads it."""
    setting = one.setting
    option = typer.Option(
        one.flag,
        help=setting.help,
        metavar=setting.metavar,
        min=one.min,
        max=one.max,
        rich_help_panel=setting.group,
    )
    kind, default = _typer_kind(one.kind), one.default
    if default is REQUIRED:
        default = inspect.Parameter.empty
    elif one.holds_several:
        kind, default = kind | None, list(default or ()) or None
    return _parameter(one.name, Annotated[kind, option], default)


def _typer_kind(kind: Any) -> Any:
    """A type that typer reads: sequences are lists, a choice of texts is a literal."""
    if is_sequence(kind):
        return list[next(_typer_kind(part) for part in get_args(kind) if part is not Ellipsis)]  # type: ignore[misc]
    parts = get_args(kind)
    if get_origin(kind) is Literal or not parts:
        return kind
    return Union[tuple(_typer_kind(part) for part in parts)]  # noqa: UP007 - built, not written


def _is_tuple(one: SettingField) -> bool:
    return any(
        is_sequence(part) and get_origin(part) is not list
        for part in (one.kind, *get_args(one.kind))
    )


def _parameter(name: str, kind: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)


def _group(parameter: inspect.Parameter) -> int:
    """The place of a parameter's group; arguments and options without one come first."""
    for mark in get_args(parameter.annotation)[1:]:
        group = getattr(mark, "rich_help_panel", None)
        if group in GROUPS:
            return GROUPS.index(group)
    return -1
