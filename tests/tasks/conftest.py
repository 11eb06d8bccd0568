"""Tiny models learn on one thread: on a busy machine, several wait for each other all the time."""

from __future__ import annotations

from one_thread import one_thread  # noqa: F401 - a fixture of all tests here
