"""Folders of causal language models: a model folder with words.txt and splitter.json.

Where the words are the pieces of a tokenizer the folder has that tokenizer, and everything that
reads folders of causal models reads it.
"""

from __future__ import annotations

from pathlib import Path

from bertsmith.classic.gpt.model import GptLm
from bertsmith.classic.gpt.units import TokenUnits
from bertsmith.classic.stream.folder import WORDS, read_words
from bertsmith.classic.stream.splitting import SPLITTER, SplitRule
from bertsmith.errors import FolderError
from bertsmith.files.atomic_folder import write_file
from bertsmith.files.folder_hashes import write_hashes
from bertsmith.files.safe_folder import Folder
from bertsmith.folders.extras import LANGUAGE_MODEL, Extras
from bertsmith.folders.opened import OWN
from bertsmith.folders.read import load_model
from bertsmith.folders.write import save_model

KIND = "gpt"


def save_gpt(lm: GptLm, folder: Path) -> None:
    """Write a new folder."""
    tokenizer = None if lm.rule is None else lm.rule.tokenizer
    record = {"kind": KIND, "words": len(lm.words), "window": lm.window}
    save_model(lm.model, tokenizer, folder, extras=Extras(json={LANGUAGE_MODEL: record}))
    write_file(folder / WORDS, "".join(f"{word}\n" for word in lm.words).encode())
    if lm.rule is not None:
        lm.rule.save(folder)
    write_hashes(folder)


def open_gpt(path: Path) -> GptLm:
    """The model of a folder."""
    folder = Folder.at(path)
    record = folder.json_object(OWN).get(LANGUAGE_MODEL) if folder.has(OWN) else None
    where = folder.path / OWN
    if not isinstance(record, dict) or record.get("kind") != KIND or not folder.has(WORDS):
        raise FolderError(
            f"{path} is no causal language model of words; make one with: bertsmith lm train FILES "
            "--kind gpt --out DIR"
        )
    words = read_words(folder)
    if record.get("words") != len(words):
        raise FolderError(
            f"{folder.path / WORDS} has {len(words):,} words and {OWN} says {record.get('words')}; "
            "copy both files from one folder"
        )
    loaded = load_model(folder.path)
    longest = loaded.model.spec.longest or 0
    window = record.get("window")
    if not isinstance(window, int) or not 2 <= window <= longest:
        raise FolderError(
            f"{where}: a window of {window!r} tokens does not fit a model that reads {longest:,}"
        )
    rule = SplitRule.open(folder.path) if folder.has(SPLITTER) else None
    units = TokenUnits.of(words, None if rule is None else rule.tokenizer)
    if units.size > loaded.model.spec.vocab_size or loaded.model.spec.sees != "before":
        raise FolderError(
            f"{path}: {WORDS} and config.json do not fit: {units.size:,} tokens, an embedding of "
            f"{loaded.model.spec.vocab_size:,} rows; copy all files from one folder"
        )
    return GptLm(words=words, units=units, model=loaded.model.eval(), window=window, rule=rule)
