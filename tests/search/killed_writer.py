"""Builds an index in a database; SIGKILL comes between the rows of a block and its journal.

Run as: killed_writer.py ADDRESS ROWS BLOCK NUMBER (of the write of the journal that is the end).
"""

from __future__ import annotations

import os
import signal
import sys

from toy_index import ToyEncoder, plan, source_of, texts

from bertsmith.search import index as building
from bertsmith.search.index import add_rows, new_store
from bertsmith.search.postgres import writer as writing

address, count, block, last = sys.argv[1], *map(int, sys.argv[2:])
rows = texts(count)
usual = writing.write_journal
left = [last]


def counted(*arguments) -> None:  # type: ignore[no-untyped-def]
    left[0] -= 1
    if not left[0]:
        os.kill(os.getpid(), signal.SIGKILL)
    usual(*arguments)


building.BLOCK = block
writing.write_journal = counted
with new_store(address, plan(), source_of(rows)) as writer:
    add_rows(writer, rows, ToyEncoder(), "rows")
