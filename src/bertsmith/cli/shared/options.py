"""Options in groups: a command takes settings objects, its user one option a field."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, get_type_hints


def spread(command: Callable[..., None]) -> Callable[..., None]:
    """The command as typer reads it: dataclass parameters stand as their fields, in their order.

    A field is annotated as a parameter would be: `Annotated[type, typer.Option(...)]`.
    """
    hints = get_type_hints(command, include_extras=True)
    own = inspect.signature(command).parameters
    groups = {name: hints[name] for name in own if is_dataclass(hints[name])}
    shown: list[inspect.Parameter] = []
    for name, parameter in own.items():
        shown += (
            _fields(groups[name])
            if name in groups
            else [_option(name, hints[name], parameter.default)]
        )

    @functools.wraps(command)
    def run(**values: Any) -> None:  # typer calls by name, whatever the names are
        for name, group in groups.items():
            values[name] = group(**{one.name: values.pop(one.name) for one in fields(group)})
        command(**values)

    run.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
    return run


def _fields(group: Any) -> list[inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    return [
        _option(
            one.name,
            hints[one.name],
            inspect.Parameter.empty if one.default is MISSING else one.default,
        )
        for one in fields(group)
    ]


def _option(name: str, kind: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)
