"""What a folder holds, from its settings and the headers of its weights; torch is not needed."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from bertsmith.errors import FolderError
from bertsmith.files.digest import stream_digest
from bertsmith.files.folder_hashes import HASHES, damage
from bertsmith.files.safe_folder import Folder
from bertsmith.folders.dialects.transformers import read_tokenizer
from bertsmith.folders.kinds import MODEL, STATIC, folder_kind
from bertsmith.folders.opened import OpenFolder
from bertsmith.folders.read import ModelFolder, read_folder
from bertsmith.folders.sentence import SentenceFolder
from bertsmith.folders.tensors import open_weights
from bertsmith.models.sentence_spec import SentenceSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """Everything worth knowing about a folder before it is loaded.

    `facts` are further lines of kinds that are no model of tokens.
    """

    path: str
    kind: str
    holds: str
    abilities: tuple[str, ...]
    files: dict[str, dict[str, Any]]
    facts: dict[str, Any] = field(default_factory=dict)
    variant: str | None = None
    model_type: str | None = None
    architecture: str | None = None
    shape: dict[str, Any] = field(default_factory=dict)
    parameters: int | None = None
    tensors: int | None = None
    stored_as: tuple[str, ...] = ()
    vocabulary: int | None = None
    longest_text: int | None = None
    vector_width: int | None = None
    pooling: tuple[str, ...] | None = None
    modules: tuple[str, ...] = ()  # what comes before and after the pooling
    normalize: bool | None = None
    similarity: str | None = None
    prompts: dict[str, str] = field(default_factory=dict)
    labels: tuple[str, ...] = ()
    unknown_keys: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()  # files that are not as bertsmith wrote them


def describe(name: str | Path, *, hashes: bool = False, check: bool = False) -> Description:
    """Describe a folder of any kind by path or name; `hashes` adds the sha256 of every file.

    `check` compares them with those of hashes.json; `changed` then names what differs.
    """
    opened = OpenFolder.at(name)
    kind = folder_kind(opened)
    about = Description(
        path=str(opened.path),
        kind=kind.name,
        holds=kind.holds,
        abilities=tuple(sorted(kind.abilities(opened))),
        files=_files(opened.root, hashes=hashes),
        facts=dict(kind.facts(opened)),
        changed=_changed(opened.root) if check else (),
    )
    if kind is MODEL:
        return _model(about, opened)
    return _static(about, opened.parts) if kind is STATIC else about


def _changed(folder: Folder) -> tuple[str, ...]:
    """The files that changed or went since bertsmith wrote the folder, whatever their size."""
    way = f"copy it anew, or remove {HASHES} if the change is yours"
    return tuple(f"{one} since the folder was written: {way}" for one in damage(folder))


def _model(about: Description, opened: OpenFolder) -> Description:
    folder = read_folder(opened)
    sentence = folder.sentence
    parameters, tensors, stored, problems = _weights(folder)
    return replace(
        about,
        variant=folder.variant,
        model_type=folder.reading.model_type,
        architecture=folder.reading.architecture,
        shape=folder.spec.to_json(),
        parameters=parameters,
        tensors=tensors,
        stored_as=stored,
        vocabulary=folder.tokenizer.vocab_size if folder.tokenizer else None,
        longest_text=folder.longest(),
        vector_width=sentence.width(folder.spec.hidden) if sentence else None,
        pooling=sentence.pooling if sentence else None,
        modules=_modules(folder.parts),
        normalize=sentence.normalize if sentence else None,
        similarity=sentence.similarity if sentence else None,
        prompts=dict(sentence.prompts) if sentence else {},
        labels=folder.reading.labels.names,
        unknown_keys=folder.unknown_keys,
        problems=(*problems, *_problems(folder.parts)),
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


def _static(about: Description, parts: SentenceFolder) -> Description:
    with open_weights(parts.transformer) as weights:
        places = [stored.place for stored in weights.stored.values()]
    rows, width = max((place.shape for place in places), key=math.prod)
    settings = parts.settings or SentenceSettings()
    return replace(
        about,
        variant="static",
        model_type="static",
        shape={"hidden": width, "vocab_size": rows},
        parameters=sum(math.prod(place.shape) for place in places),
        tensors=len(places),
        stored_as=tuple(sorted({place.dtype for place in places})),
        vocabulary=read_tokenizer(parts.transformer).vocab_size,
        vector_width=settings.dense[-1].outputs if settings.dense else width,
        pooling=settings.pooling,
        modules=_modules(parts),
        normalize=settings.normalize,
        similarity=settings.similarity,
        prompts=dict(settings.prompts),
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
