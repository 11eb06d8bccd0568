"""Rows of wrong and right texts: pairs, SIGHAN's files, or clean text with planted errors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from bertsmith.errors import ConfigError, InputFileError
from bertsmith.labeled.errors.confusions import (
    PINYIN,
    Confusions,
    pinyin_confusions,
    read_confusions,
)
from bertsmith.labeled.errors.misspell import ErrorSettings, misspelled
from bertsmith.labeled.errors.sighan import read_sighan, reads_sighan
from bertsmith.labeled.pairs.pairs import SentenceData, read_sentences
from bertsmith.labeled.pairs.splits import PairFiles, PairSplits, read_sides, written_rows
from bertsmith.labeled.read.reader import OnError
from bertsmith.labeled.spec import DataSpec
from bertsmith.text.segment import is_chinese
from bertsmith.wording import counted


def read_corrections(files: PairFiles, errors: ErrorSettings) -> PairSplits:
    """The rows of training, dev and test."""
    return read_sides(files, lambda path, spec: correction_rows(path, spec, files.on_error, errors))


def correction_rows(
    path: Path, spec: DataSpec, on_error: OnError = "stop", errors: ErrorSettings | None = None
) -> SentenceData:
    """Wrong and right texts of one file, of equal length."""
    if reads_sighan(path):
        return _equal(path, read_sighan(path))
    if errors is not None and errors.confusions is not None:
        return _planted(path, spec, on_error, errors)
    try:
        data = written_rows(path, spec, on_error)
    except ConfigError as fault:
        reason = fault.__cause__ or fault
        raise ConfigError(
            f"{path}: correction needs a column of wrong texts and one of right ones ({reason}); "
            "name both: --text WRONG --text RIGHT. Clean text is read with --set "
            "errors.confusions=FILE or errors.confusions=pinyin, which plants errors"
        ) from fault
    return _equal(path, data)


def given_confusions(named: str, texts: Sequence[str]) -> Confusions:
    """The confusions of a setting: a file, or the sounds of the characters of some texts."""
    if named == PINYIN:
        return pinyin_confusions({one for text in texts for one in text})
    path = Path(named).expanduser()
    if not path.is_file():
        raise ConfigError(f"errors.confusions: there is no file {path}; name one, or give pinyin")
    return read_confusions(path)


def _planted(path: Path, spec: DataSpec, on_error: OnError, errors: ErrorSettings) -> SentenceData:
    given = spec.model_copy(update={"task": None, "target": None, "label": ()})
    clean = read_sentences(path, kind="texts", spec=given, on_error=on_error)
    texts = [row[0] for row in clean.rows]
    confusions = given_confusions(str(errors.confusions), texts)
    rows = [(misspelled(text, confusions, errors), text) for text in texts]
    wrong = sum(one != other for one, other in rows)
    if not wrong:
        raise InputFileError(
            f"{path}: no error could be planted: none of the characters has a confusion, or "
            "errors.rate is too low"
        )
    note = f"{path.name}: errors planted into {wrong:,} of {len(rows):,} texts"
    return replace(clean, kind="pairs", rows=rows, notes=(*clean.notes, note))


def _equal(path: Path, data: SentenceData) -> SentenceData:
    """Leave out pairs of different lengths, of which no place can be compared."""
    kept = [n for n, (wrong, right) in enumerate(data.rows) if len(wrong) == len(right)]
    odd = next((n for n, (one, other) in enumerate(data.rows) if len(one) != len(other)), None)
    if odd is None:
        return data
    wrong, right = data.rows[odd][:2]
    where = (
        f"line {data.lines[odd]}: the wrong text has {len(wrong)} characters, the right one "
        f"{len(right)}"
    )
    if not kept:
        raise InputFileError(
            f"{path}, {where}; correction replaces characters one by one, so both texts of a row "
            "must be of the same length: is it the right column?"
        )
    left = len(data) - len(kept)
    note = f"{path.name}: {counted(left, 'pair')} of different lengths left out (first: {where})"
    return replace(data.some(kept), notes=(*data.notes, note))


def wrong_places(wrong: str, right: str) -> dict[int, str]:
    """The right character at each place where two texts of equal length differ."""
    pairs = enumerate(zip(wrong, right, strict=True))
    return {place: other for place, (one, other) in pairs if one != other}


def correctable(text: str, may: Callable[[str], bool] = is_chinese) -> list[int]:
    """The places of a text that may be changed: Chinese characters, no Latin and no digits."""
    return [place for place, character in enumerate(text) if may(character)]
