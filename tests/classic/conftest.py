"""Fixtures of the models that came before BERT."""

from __future__ import annotations

from one_thread import one_thread  # noqa: F401 - a fixture of all tests here
