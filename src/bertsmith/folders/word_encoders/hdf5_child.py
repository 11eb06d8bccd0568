"""The only reader of hdf5, a program of its own: `python -I hdf5_child.py DATASETS SECONDS`.

It reads an hdf5 file from standard input and writes the datasets that the JSON list DATASETS names
(`[[name, [rows, columns]], ...]`) to standard output: one line of JSON, `{"bytes": n}` or
`{"error": text}`, then their values in that order as little-endian float32. Libraries of hdf5 can
be made to loop, to crash and to open other files by what a file holds: so this process is bounded
in memory and time and cannot open anything once it has begun. It imports nothing of bertsmith.
"""

from __future__ import annotations

import io
import json
import math
import os
import sys
from collections.abc import Iterator
from typing import Any

LAYOUTS = ("contiguous", "chunked")
FILTERS = {1: "deflate", 2: "shuffle", 3: "fletcher32"}
EXPANSION = 8  # times the stored bytes: weights hardly shrink when they are packed
MARGIN = 256 << 20  # bytes, for the library itself


class NotWeightsError(Exception):
    """A file that does not hold what weights are."""


def main(arguments: list[str]) -> int:
    """Answer for standard input."""
    wanted = [(str(name), tuple(shape)) for name, shape in json.loads(arguments[0])]
    needed = sum(4 * math.prod(shape) for _, shape in wanted)
    out = sys.stdout.buffer
    try:
        confine(2 * needed, int(arguments[1]))
        blocks = list(values(io.FileIO(0, closefd=False), wanted))
    except NotWeightsError as fault:
        out.write(json.dumps({"error": str(fault)}).encode() + b"\n")
        return 1
    except Exception as fault:  # the file is hostile by assumption: any fault is a refusal
        lines = (str(fault).strip() or type(fault).__name__).splitlines()
        reason = f"the file is damaged ({lines[0][:200]})"
        out.write(json.dumps({"error": reason}).encode() + b"\n")
        return 1
    out.write(json.dumps({"bytes": needed}).encode() + b"\n")
    for block in blocks:
        out.write(block)
    return 0


def confine(memory: int, seconds: int) -> None:
    """Bound this process; all that reading needs has been imported and used once."""
    import h5py
    import numpy

    with h5py.File(io.BytesIO(), "w") as file:  # imports and opens what reading needs
        file.create_dataset("a", data=numpy.zeros((2, 2)), chunks=(1, 2), compression="gzip")
        file["a"][...]
    import resource

    limits = {
        resource.RLIMIT_CPU: seconds,
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_NOFILE: 3,  # the standard ones: no other file can be opened
    }
    if os.path.exists("/proc/self/statm"):  # noqa: PTH110 - elsewhere nobody tells what is mapped
        with open("/proc/self/statm", encoding="ascii") as statm:  # noqa: PTH123
            mapped = int(statm.read().split()[0]) * resource.getpagesize()
        limits[resource.RLIMIT_AS] = mapped + memory + MARGIN
    for kind, value in limits.items():
        _, hard = resource.getrlimit(kind)
        allowed = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (allowed, allowed))


def values(source: Any, wanted: list[tuple[str, tuple[int, ...]]]) -> Iterator[memoryview]:
    """The values of each dataset; all are looked at before the first one is read."""
    import h5py
    import numpy

    try:
        file = h5py.File(source, "r")
    except OSError as fault:
        raise NotWeightsError("it is no whole hdf5 file") from fault
    with file:
        found = [(name, dataset(file, name, shape)) for name, shape in wanted]
        for name, one in found:
            try:
                block = numpy.ascontiguousarray(one[...], dtype="<f4")
            except OSError as fault:
                raise NotWeightsError(f"tensor {name} cannot be read") from fault
            yield block.reshape(-1).view("u1").data


def dataset(file: Any, name: str, shape: tuple[int, ...]) -> Any:
    """A dataset of floats of that shape, stored whole in this file."""
    import h5py

    place, found = "", file
    for part in name.split("/"):
        place = f"{place}/{part}".lstrip("/")
        if not isinstance(found, h5py.Group) or not found.id.links.exists(part.encode()):
            raise NotWeightsError(f"it has no tensor {name}")
        if found.id.links.get_info(part.encode()).type != h5py.h5l.TYPE_HARD:
            raise NotWeightsError(f"{place} is a link; only what the file itself holds is read")
        found = found[part]
    if not isinstance(found, h5py.Dataset):
        raise NotWeightsError(f"it has no tensor {name}")
    check_storage(name, found)
    if tuple(found.shape or ()) != shape:
        raise NotWeightsError(f"tensor {name} has shape {tuple(found.shape or ())}, not {shape}")
    if found.dtype.kind != "f" or found.dtype.itemsize > 8:
        raise NotWeightsError(f"tensor {name} holds {found.dtype}; only floats are read")
    return found


def check_storage(name: str, found: Any) -> None:
    """Whether all values of a dataset lie in this file, in a layout that is read."""
    from h5py import h5d

    plan = found.id.get_create_plist()
    layouts = {h5d.CONTIGUOUS: "contiguous", h5d.CHUNKED: "chunked", h5d.COMPACT: "compact"}
    layout = layouts.get(plan.get_layout(), "virtual")
    if layout not in LAYOUTS or plan.get_external_count():
        layout = "external" if layout in LAYOUTS else layout
        raise NotWeightsError(
            f"tensor {name} has a {layout} layout; {' or '.join(LAYOUTS)} is read"
        )
    filters = [plan.get_filter(number)[0] for number in range(plan.get_nfilters())]
    if unknown := [number for number in filters if number not in FILTERS]:
        raise NotWeightsError(f"tensor {name} is packed by filter {unknown[0]}, which is not read")
    stored = found.id.get_storage_size()
    expected = found.nbytes if layout == "contiguous" or not filters else found.nbytes // EXPANSION
    if stored < expected:
        raise NotWeightsError(
            f"tensor {name} has {found.nbytes:,} bytes, and {stored:,} are stored"
        )
    if layout == "chunked" and math.prod(plan.get_chunk()) * found.dtype.itemsize > 2 * max(
        found.nbytes, 1
    ):
        raise NotWeightsError(f"tensor {name} lies in chunks larger than itself")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
