"""Folders of n-gram models: config.json, words.txt and three arrays per order, memory-mapped."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertsmith.classic.ngram.estimation import EstimatedOrder
from bertsmith.classic.ngram.model import KIND, NgramLm, NgramOrder
from bertsmith.classic.stream.folder import WORDS, read_words
from bertsmith.classic.stream.splitting import SplitRule
from bertsmith.errors import FolderError
from bertsmith.files.atomic_folder import staged_folder, write_file
from bertsmith.files.folder_hashes import check_hashes, write_hashes
from bertsmith.files.safe_folder import Folder

CONFIG = "config.json"
PER_NGRAM = 24  # bytes
_SMALL = 1 << 16


def write_ngram(
    words: Sequence[str],
    orders: Iterable[EstimatedOrder],
    out: Path,
    *,
    about: dict[str, Any] | None = None,
    rule: SplitRule | None = None,
    overwrite: bool = False,
) -> None:
    """Write a folder, all or nothing, order by order as they come."""
    sizes: list[int] = []
    discounts: list[tuple[float, ...] | None] = []
    with staged_folder(out, needed=_SMALL, overwrite=overwrite) as staging:
        for length, order in enumerate(orders, start=1):
            arrays = {"keys": order.keys.astype("<i8"), "logs": order.logs.astype("<f8")}
            if order.backoffs is not None:
                arrays["backoffs"] = order.backoffs.astype("<f8")
            for name, array in arrays.items():
                write_file(
                    staging / f"{length}.{name}", array.data.cast("B") if len(array) else b""
                )
            sizes.append(len(order.keys))
            discounts.append(order.discounts)
        config = {
            "model_type": KIND,
            "order": len(sizes),
            "sizes": sizes,
            "discounts": discounts,
            **(about or {}),
        }
        write_file(staging / CONFIG, json.dumps(config, indent=2, ensure_ascii=False).encode())
        if rule is not None:
            rule.save(staging)
        write_file(staging / WORDS, "".join(f"{word}\n" for word in words).encode())
        write_hashes(staging)


def open_ngram(path: Path) -> NgramLm:
    """The model of a folder; sizes are compared before anything is read."""
    folder = Folder.at(path, wanted="the folder of an n-gram model")
    check_hashes(folder)
    config = folder.json_object(CONFIG)
    sizes = config.get("sizes")
    if (
        config.get("model_type") != KIND
        or not isinstance(sizes, list)
        or not sizes
        or not all(isinstance(size, int) and size >= 0 for size in sizes)
    ):
        raise FolderError(f"{folder.path / CONFIG} is not that of an n-gram model")
    words = read_words(folder)
    if sizes[0] != len(words) + 2:
        raise FolderError(
            f"{folder.path / WORDS} has {len(words):,} words and {CONFIG} says {sizes[0] - 2:,}; "
            "copy both files from one folder"
        )
    orders = []
    for length, size in enumerate(sizes, start=1):
        backoffs = None
        if length < len(sizes):
            backoffs = _array(folder, f"{length}.backoffs", "<f8", size)
        keys = _array(folder, f"{length}.keys", "<i8", size)
        orders.append(NgramOrder(keys, _array(folder, f"{length}.logs", "<f8", size), backoffs))
    return NgramLm(words, tuple(orders))


def _array(folder: Folder, name: str, kind: str, size: int) -> NDArray[Any]:
    with folder.open(name) as file:
        bytes_there = os.fstat(file.fileno()).st_size
        if bytes_there != 8 * size:
            raise FolderError(
                f"{folder.path / name} has {bytes_there:,} bytes instead of {8 * size:,}: it is "
                "damaged; train or convert the model again"
            )
        return np.memmap(file, dtype=kind, mode="r") if size else np.zeros(0, dtype=kind)
