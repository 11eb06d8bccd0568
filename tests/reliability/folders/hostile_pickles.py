"""Pickles that run code when a careless reader opens them; each tries to create a marker file."""

from __future__ import annotations

import io
import os
import pickle
import pickletools
import struct
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import torch


class Bomb:
    """Unpickling this runs a command."""

    def __init__(self, marker: Path, how: str = "os.system") -> None:
        self.marker = marker
        self.how = how

    def __reduce__(self) -> tuple[object, ...]:
        touch = f"touch '{self.marker}'"
        if self.how == "os.system":
            return (os.system, (touch,))
        if self.how == "eval":
            return (eval, (f"open({str(self.marker)!r}, 'w').close()",))
        if self.how == "exec":
            return (exec, (f"open({str(self.marker)!r}, 'w').close()",))
        import subprocess

        return (subprocess.getoutput, (touch,))


def hostile_pickles(marker: Path) -> dict[str, bytes]:
    """Hostile files of many containers, by name."""
    files: dict[str, bytes] = {}
    for protocol in range(6):
        files[f"raw, protocol {protocol}"] = pickle.dumps(Bomb(marker), protocol=protocol)
    for how in ("eval", "exec", "subprocess"):
        files[f"raw, {how}"] = pickle.dumps(Bomb(marker, how))
    state = {"embeddings.word_embeddings.weight": Bomb(marker)}
    files["state dict"] = pickle.dumps(state)
    files["torch zip"] = _saved(state, zipped=True)
    files["torch legacy"] = _saved(state, zipped=False)
    files["torch zip, nested"] = _saved({"state_dict": {"a": torch.ones(2), "b": Bomb(marker)}})
    files["torch zip, module"] = _saved(Bomb(marker))
    files["torch tar"] = _tar({"pickle": pickle.dumps(state), "storages": b"", "tensors": b""})
    files["npy of objects"] = _npy(np.array([Bomb(marker)], dtype=object))
    files["npz of objects"] = _npz(np.array([Bomb(marker)], dtype=object))
    files["joblib style"] = pickle.dumps({"array": Bomb(marker)}, protocol=4)
    files["dcp metadata"] = pickle.dumps(("metadata", Bomb(marker)), protocol=2)
    files["torchscript zip"] = _zip(
        {"m/constants.pkl": pickle.dumps(()), "m/data.pkl": pickle.dumps(Bomb(marker))}
    )
    files["nested zip"] = _zip(
        {"archive/data.pkl": pickle.dumps(state), "inner.zip": _saved(state)}
    )
    files["compressed zip"] = _zip({"archive/data.pkl": pickle.dumps(state)}, packed=True)
    files["zip bomb"] = _zip({"archive/data.pkl": b"\0" * (64 << 20)}, packed=True)
    files["opcodes by hand"] = b"\x80\x02cposix\nsystem\nX" + _long(f"touch '{marker}'") + b"\x85R."
    files["stack global"] = (
        b"\x80\x04\x8c\x05posix\x8c\x06system\x93X" + _long(f"touch '{marker}'") + b"\x85R."
    )
    files["build with setstate"] = (
        b"\x80\x02cbuiltins\ngetattr\ncposix\nsystem\nX\x08\x00\x00\x00__call__\x86RX"
        + _long(f"touch '{marker}'")
        + b"\x85R."
    )
    files["optimized"] = pickletools.optimize(pickle.dumps(Bomb(marker), protocol=2))
    files["persistent id"] = b"\x80\x02X\x03\x00\x00\x00abcQ."
    files["endless memo"] = b"\x80\x02" + b"]q\x00" + b"h\x00a" * 100_000 + b"."
    return files


def _saved(value: object, *, zipped: bool = True) -> bytes:
    buffer = io.BytesIO()
    torch.save(value, buffer, _use_new_zipfile_serialization=zipped)
    return buffer.getvalue()


def _tar(members: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


def _zip(members: dict[str, bytes], *, packed: bool = False) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED if packed else 0) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return buffer.getvalue()


def _npy(array: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=True)
    return buffer.getvalue()


def _npz(array: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, array)
    return buffer.getvalue()


def _long(text: str) -> bytes:
    data = text.encode()
    return struct.pack("<I", len(data)) + data
