"""Ranking by words: the postings of a query's words are fetched, and BM25 is computed here.

Postings lie in blocks of rows that were added together, one database row per word and block, in
the form of a folder's segments; so the scores are those of the same index in a folder.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from psycopg import sql

from bertsmith.search.bm25 import Bm25, Postings
from bertsmith.search.postgres.address import Address
from bertsmith.search.postgres.schema import words_table
from bertsmith.search.postgres.session import Connection

LENGTHS_OF_ROWS = ""  # in place of a word: how many words each row of a block has
LONGEST_TERM = 200  # bytes; the key of a database's index is bounded

Blocks = list[tuple[int, NDArray[Any]]]


def term_key(term: str) -> str:
    """A word as it is stored; a long one by its digest, with a sign that no word has."""
    data = term.encode()
    return term if len(data) <= LONGEST_TERM else f"#{hashlib.sha256(data).hexdigest()}"


def read_lengths(connection: Connection, address: Address, next_id: int) -> Blocks:
    """(id of the first row, numbers of words (n,)) of each block."""
    query = sql.SQL("SELECT first, rows FROM {} WHERE term = %s AND first < %s ORDER BY first")
    cursor = connection.execute(
        query.format(words_table(address)), (LENGTHS_OF_ROWS, next_id), binary=True
    )
    return [(int(first), np.frombuffer(rows, "<u4")) for first, rows in cursor]


def ranking(connection: Connection, address: Address, blocks: Blocks, words: Sequence[str]) -> Bm25:
    """BM25 over all blocks, with the postings of these words alone; positions are ids."""
    query = sql.SQL("SELECT term, first, rows, counts FROM {} WHERE term = ANY(%s)")
    keys = sorted({term_key(word) for word in words})
    found: dict[int, dict[bytes, tuple[bytes, bytes]]] = {}
    for term, first, rows, counts in connection.execute(
        query.format(words_table(address)), (keys,), binary=True
    ):
        found.setdefault(int(first), {})[term.encode()] = (rows, counts)
    return Bm25([_postings(first, lengths, found.get(first, {})) for first, lengths in blocks])


def _postings(
    first: int, lengths: NDArray[Any], words: dict[bytes, tuple[bytes, bytes]]
) -> Postings:
    terms = sorted(words)
    rows = [np.frombuffer(words[term][0], "<u4") for term in terms]
    counts = [np.frombuffer(words[term][1], "<u4") for term in terms]
    empty = np.zeros(0, dtype="<u4")
    return Postings(
        terms=terms,
        starts=np.cumsum([0, *(len(part) for part in rows)]),
        rows=np.concatenate([empty, *rows]),
        counts=np.concatenate([empty, *counts]),
        lengths=lengths,
        first=first,
    )
