"""Values of a task as its model folder stores them, checked against the types they should have."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, TypeVar, get_type_hints

from pydantic import TypeAdapter, ValidationError

T = TypeVar("T")


def stored_fields(kind: type[T], values: Mapping[str, Any], *names: str) -> T:
    """An object of a dataclass from the named values, each of the type of its field.

    Raises KeyError for a missing value and ValueError for one of another type.
    """
    hints = get_type_hints(kind)
    return kind(**{name: stored_value(values, name, hints[name]) for name in names})


def stored_value(values: Mapping[str, Any], name: str, hint: Any) -> Any:
    """One value, of a type that JSON can hold; as strict as JSON is, but a list may be a tuple."""
    try:
        return TypeAdapter(hint).validate_json(json.dumps(values[name]), strict=True)
    except ValidationError as error:
        message = error.errors()[0]["msg"].removeprefix("Input ")
        raise ValueError(f"{name} {message}") from error
