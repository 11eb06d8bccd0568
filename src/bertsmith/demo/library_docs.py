"""The standard library's own documentation as passages: language topics and docstrings."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from types import ModuleType

_NAMES = """
argparse array ast asyncio base64 bisect builtins bz2 calendar cmath codecs collections
concurrent.futures configparser contextlib copy csv dataclasses datetime decimal difflib dis email
enum fileinput fnmatch fractions functools gc getpass glob graphlib gzip hashlib heapq hmac html
http.client inspect io ipaddress itertools json keyword linecache locale logging lzma mailbox math
mimetypes multiprocessing numbers operator os os.path pathlib pickle pkgutil platform plistlib
pprint queue random re sched secrets select selectors shelve shlex shutil signal smtplib socket
socketserver sqlite3 ssl statistics string struct subprocess sys sysconfig tarfile tempfile
textwrap threading time timeit tokenize tomllib traceback types typing unicodedata unittest
urllib.parse urllib.request uuid warnings wave weakref xml.etree.ElementTree zipfile zlib zoneinfo
"""
MODULES = tuple(_NAMES.split())
_SHORTEST = 40  # characters; shorter docstrings are no use for search


@dataclass(frozen=True, slots=True)
class Passage:
    """A piece of documentation and its source."""

    source: str
    text: str


def passages() -> list[Passage]:
    """Every passage once, in a fixed order."""
    unique: dict[str, Passage] = {}
    for passage in (*_topics(), *_docstrings()):
        unique.setdefault(passage.text, passage)
    return list(unique.values())


def _topics(size: int = 700) -> Iterator[Passage]:
    """The language reference behind `help("lists")`, cut between paragraphs at about `size`."""
    from pydoc_data.topics import topics

    for name, text in sorted(topics.items()):
        piece: list[str] = []
        for paragraph in text.split("\n\n"):
            piece.append(paragraph.strip())
            if sum(map(len, piece)) > size:
                yield Passage(f'help("{name}")', "\n".join(piece))
                piece = []
        if piece:
            yield Passage(f'help("{name}")', "\n".join(piece))


def _docstrings() -> Iterator[Passage]:
    for name in MODULES:
        try:
            module = importlib.import_module(name)
        except ImportError:  # some builds of Python leave parts of the library out
            continue
        yield from _described(module, name)


def _described(module: ModuleType, prefix: str) -> Iterator[Passage]:
    """The docstrings of a module, its public functions and classes, and their methods."""
    if module.__doc__ and len(module.__doc__) > _SHORTEST:
        yield Passage(prefix, f"{prefix}: {inspect.cleandoc(module.__doc__)}")
    listed = getattr(module, "__all__", None) or [n for n in vars(module) if not n.startswith("_")]
    for name in listed:
        thing = getattr(module, name, None)
        if inspect.isclass(thing):
            yield from _one(thing, f"{prefix}.{name}")
            for method in sorted(vars(thing)):
                if not method.startswith("_"):
                    yield from _one(getattr(thing, method, None), f"{prefix}.{name}.{method}")
        elif inspect.isroutine(thing):
            yield from _one(thing, f"{prefix}.{name}")


def _one(thing: object, name: str) -> Iterator[Passage]:
    doc = getattr(thing, "__doc__", None)
    if isinstance(doc, str) and len(doc) > _SHORTEST:
        yield Passage(name.removeprefix("builtins."), f"{name}: {inspect.cleandoc(doc)}")
