"""Which part of the standard library a docstring comes from: rows to learn that from."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from bertsmith.demo.library_docs import Passage
from bertsmith.labeled.example import Example, Label
from bertsmith.labeled.read.write import write_examples

_PARTS = {
    "text": "codecs difflib html locale re shlex string textwrap unicodedata",
    "numbers": "cmath decimal fractions math numbers random statistics",
    "time": "calendar datetime sched time timeit zoneinfo",
    "files": "fileinput fnmatch glob io linecache os os.path pathlib shutil tempfile",
    "network": "email http.client ipaddress mailbox smtplib socket socketserver ssl urllib.parse "
    "urllib.request",
    "at once": "asyncio concurrent.futures multiprocessing queue select selectors signal "
    "subprocess threading",
    "storage": "bz2 configparser csv gzip json lzma pickle plistlib shelve sqlite3 tarfile tomllib "
    "xml.etree.ElementTree zipfile zlib",
    "Python itself": "ast dis enum gc inspect keyword pkgutil platform sys sysconfig tokenize "
    "traceback types typing unittest warnings weakref",
}
PARTS = {module: part for part, modules in _PARTS.items() for module in modules.split()}
_NAME = re.compile(r"\A[\w.]+: ")
MOST = 260  # docstrings of a part: two of them have half of all


def labeled_docstrings(passages: Sequence[Passage]) -> list[tuple[str, str]]:
    """Docstrings with their part, spread evenly over each; names of modules are taken away."""
    by_part: dict[str, dict[str, None]] = {part: {} for part in _PARTS}
    for part, text in _labeled(passages):
        by_part[part][text] = None  # methods often share one
    rows = []
    for part, distinct in by_part.items():
        texts = list(distinct)
        count = min(len(texts), MOST)
        rows += [(texts[at * len(texts) // count], part) for at in range(count)]
    return rows


def docstring_parts(passages: Sequence[Passage]) -> list[Example]:
    """The same as labeled rows."""
    rows = labeled_docstrings(passages)
    return [
        Example(source="docstrings", line=at, id=str(at), texts=(text,), target=Label(part))
        for at, (text, part) in enumerate(rows, start=1)
    ]


def write_parts(passages: Sequence[Passage], path: Path) -> int:
    """The rows as a table that `bertsmith finetune` reads; how many there are."""
    rows = docstring_parts(passages)
    write_examples(path, rows, "csv")
    return len(rows)


def _labeled(passages: Sequence[Passage]) -> Iterator[tuple[str, str]]:
    for passage in passages:
        module = _module(passage.source)
        if module is not None:
            yield PARTS[module], _NAME.sub("", passage.text)


def _module(source: str) -> str | None:
    """The longest module name that a source begins with, if it is one of `PARTS`."""
    parts = source.split(".")
    names = (".".join(parts[:length]) for length in range(len(parts), 0, -1))
    return next((name for name in names if name in PARTS), None)
