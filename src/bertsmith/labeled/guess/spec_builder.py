"""Builds a data spec: what the user set stays, what is guessed comes with its reason."""

from __future__ import annotations

from typing import Any

from bertsmith.labeled.spec import DataSpec


class SpecBuilder:
    """Settings given by the user, and guesses for the others."""

    def __init__(self, given: DataSpec) -> None:
        self._given = given
        self._set = given.given
        self._values: dict[str, Any] = {}
        self._why: dict[str, str] = {}

    def is_set(self, name: str) -> bool:
        """Whether the user decided this setting."""
        return name in self._set

    def put(self, name: str, value: object, why: str) -> None:
        """Guess a setting, unless the user decided it."""
        if name not in self._set:
            self._values[name] = value
            self._why[name] = why

    def get(self, name: str) -> Any:
        """A setting as it stands."""
        return getattr(self._given, name) if name in self._set else self._values.get(name)

    def spec(self) -> DataSpec:
        """The finished spec."""
        given = {name: getattr(self._given, name) for name in self._set}
        return DataSpec(**given, **self._values, why={**self._given.why, **self._why})
