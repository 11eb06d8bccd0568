"""Tests of the loop run on one thread: equal bits need equal threads, and they are tiny."""

from __future__ import annotations

from one_thread import one_thread  # noqa: F401 - a fixture of all tests here
