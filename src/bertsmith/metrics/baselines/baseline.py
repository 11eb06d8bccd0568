"""The interface of a baseline: fitted on some rows, it answers new ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

Texts = Sequence[Sequence[str]]
"""The fields of each row, or the units of each text."""

Baseline = Callable[[Texts, Any, Texts, Sequence[str]], Any]
"""Texts, their targets, new texts, labels -> predictions for the new texts."""
