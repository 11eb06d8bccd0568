"""Strict JSON: values that JSON can hold."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any


def json_values(value: Any) -> Any:
    """Any nest of mappings, sequences, arrays and numbers as JSON values; nan and inf are None."""
    if isinstance(value, Mapping):
        return {str(key): json_values(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [json_values(part) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if hasattr(value, "tolist"):  # arrays and numbers of numpy
        return json_values(value.tolist())
    return value
