"""What a folder holds, from its settings and the headers of its weights; torch is not needed."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bertsmith.errors import FolderError
from bertsmith.files.digest import stream_digest
from bertsmith.files.safe_folder import Folder
from bertsmith.folders.read import ModelFolder, read_folder, read_tokenizer
from bertsmith.folders.resolve import resolve
from bertsmith.folders.sentence import SentenceFolder, read_sentence
from bertsmith.folders.tensors import open_weights
from bertsmith.models.sentence_spec import SentenceSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """Everything worth knowing about a folder before it is loaded."""

    path: str
    variant: str
    model_type: str
    architecture: str | None
    shape: dict[str, Any]
    parameters: int | None
    tensors: int | None
    stored_as: tuple[str, ...]
    vocabulary: int | None
    longest_text: int | None
    vector_width: int | None
    pooling: tuple[str, ...] | None
    modules: tuple[str, ...]  # what comes before and after the pooling
    normalize: bool | None
    similarity: str | None
    prompts: dict[str, str]
    labels: tuple[str, ...]
    unknown_keys: tuple[str, ...]
    files: dict[str, dict[str, Any]]
    problems: tuple[str, ...]


def describe(name: str | Path, *, hashes: bool = False) -> Description:
    """Describe a model by path or name; `hashes` adds the sha256 of every file."""
    path = resolve(name)
    parts = read_sentence(Folder.at(path))
    if parts.static:
        return _static(path, parts, hashes=hashes)
    folder = read_folder(path)
    sentence = folder.sentence
    parameters, tensors, stored, problems = _weights(folder)
    spec = folder.spec.to_json()
    return Description(
        path=str(folder.path),
        variant=folder.variant,
        model_type=folder.reading.model_type,
        architecture=folder.reading.architecture,
        shape=spec,
        parameters=parameters,
        tensors=tensors,
        stored_as=stored,
        vocabulary=folder.tokenizer.vocab_size if folder.tokenizer else None,
        longest_text=folder.longest(),
        vector_width=sentence.width(folder.spec.hidden) if sentence else None,
        pooling=sentence.pooling if sentence else None,
        modules=_modules(parts),
        normalize=sentence.normalize if sentence else None,
        similarity=sentence.similarity if sentence else None,
        prompts=dict(sentence.prompts) if sentence else {},
        labels=folder.reading.labels.names,
        unknown_keys=folder.unknown_keys,
        files=_files(Folder.at(folder.path), hashes=hashes),
        problems=(*problems, *_problems(parts)),
    )


def _modules(parts: SentenceFolder) -> tuple[str, ...]:
    """What a sentence model does besides pooling, in order; a mix of layers, dense layers."""
    words = ["a mix of layers"] if parts.mix is not None else []
    for layer in parts.settings.dense if parts.settings else ():
        added = " + residual" if layer.residual else ""
        words.append(f"dense {layer.inputs} to {layer.outputs}, {layer.activation}{added}")
    return tuple(words)


def _problems(parts: SentenceFolder) -> tuple[str, ...]:
    """What other programs would compute otherwise, without saying so."""
    if parts.settings is None or not any(layer.residual for layer in parts.settings.dense):
        return ()
    return (
        "dense layers with use_residual need sentence-transformers 5.7 or later; "
        "text-embeddings-inference ignores the key and gives other vectors",
    )


def _static(path: Path, parts: SentenceFolder, *, hashes: bool) -> Description:
    with open_weights(parts.transformer) as weights:
        places = [stored.place for stored in weights.stored.values()]
    rows, width = max((place.shape for place in places), key=math.prod)
    settings = parts.settings or SentenceSettings()
    return Description(
        path=str(path),
        variant="static",
        model_type="static",
        architecture=None,
        shape={"hidden": width, "vocab_size": rows},
        parameters=sum(math.prod(place.shape) for place in places),
        tensors=len(places),
        stored_as=tuple(sorted({place.dtype for place in places})),
        vocabulary=read_tokenizer(parts.transformer).vocab_size,
        longest_text=None,
        vector_width=settings.dense[-1].outputs if settings.dense else width,
        pooling=settings.pooling,
        modules=_modules(parts),
        normalize=settings.normalize,
        similarity=settings.similarity,
        prompts=dict(settings.prompts),
        labels=(),
        unknown_keys=(),
        files=_files(Folder.at(path), hashes=hashes),
        problems=_problems(parts),
    )


def _weights(
    folder: ModelFolder,
) -> tuple[int | None, int | None, tuple[str, ...], tuple[str, ...]]:
    """Parameters, tensors, stored types and what is wrong; a pickle is a finding, not an end."""
    try:
        with open_weights(folder.parts.transformer) as weights:
            places = [stored.place for stored in weights.stored.values()]
    except FolderError as fault:
        return None, None, (), (str(fault),)
    floats = [place for place in places if "F" in place.dtype]
    count = sum(math.prod(place.shape) for place in floats)
    return count, len(places), tuple(sorted({place.dtype for place in floats})), ()


def _files(folder: Folder, *, hashes: bool) -> dict[str, dict[str, Any]]:
    """Size and, with `hashes`, sha256 of the regular files in a folder and one level below."""
    found: dict[str, dict[str, Any]] = {}
    for name in folder.names():
        path = folder.path / name
        if path.is_dir() and not path.is_symlink():
            inner = Folder(path, folder.root)
            found |= {f"{name}/{file}": entry for file, entry in _level(inner, hashes).items()}
    return _level(folder, hashes) | found


def _level(folder: Folder, hashes: bool) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for name in folder.names():
        if (folder.path / name).is_dir():
            continue
        try:
            with folder.open(name) as file:
                entry: dict[str, Any] = {"bytes": os.fstat(file.fileno()).st_size}
                if hashes:
                    entry["sha256"] = stream_digest(file)
        except FolderError as fault:
            entry = {"refused": str(fault)}
        found[name] = entry
    return found
