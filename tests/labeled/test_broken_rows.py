"""Broken files, format by format: each gets a message with file, line, place, fault and remedy."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from broken import Broken
from broken_json import JSONL_FAULTS, SPAN_FAULTS
from broken_questions import SQUAD_FAULTS
from broken_tables import CSV_FAULTS, TSV_FAULTS
from broken_tags import CONLL_FAULTS

from bertsmith.errors import InputFileError, RowsError
from bertsmith.labeled import DataSpec, read_examples

FORMATS = {
    "tsv": TSV_FAULTS,
    "csv": CSV_FAULTS,
    "jsonl": JSONL_FAULTS,
    "spans": SPAN_FAULTS,
    "conll": CONLL_FAULTS,
    "squad": SQUAD_FAULTS,
}
CASES = [pytest.param(case, id=f"{kind}-{case.name}") for kind in FORMATS for case in FORMATS[kind]]


def test_every_format_has_25_faults_and_each_its_own_name() -> None:
    for kind, cases in FORMATS.items():
        assert len({case.name for case in cases}) == len(cases) >= 25, kind


@pytest.mark.reliability
@pytest.mark.parametrize("case", CASES)
def test_a_broken_file_is_named_by_place_fault_and_remedy(
    case: Broken, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if case.longest is not None:
        monkeypatch.setattr("bertsmith.files.lines.LONGEST_LINE", case.longest)
    path = tmp_path / case.name
    path.write_bytes(case.content)
    spec = DataSpec(**case.spec)
    with pytest.raises(InputFileError) as caught:
        list(read_examples(path, spec))
    assert caught.value.exit_code == 2
    message = str(caught.value)
    where = rf"{re.escape(str(path))}(, line {case.line}\b)?[^\n]*?{case.place}[^\n]*?{case.says}"
    assert re.search(where, message), message
    if case.place:
        assert f"{path}, line {case.line}" in message
    assert isinstance(caught.value, RowsError) != case.fatal
    if not case.fatal:
        assert_the_rest_is_kept(path, case)


def assert_the_rest_is_kept(path: Path, case: Broken) -> None:
    rows = read_examples(path, DataSpec(**case.spec), on_error="skip")
    kept = list(rows)
    account = rows.account
    assert account.rows_in == account.rows_ok + account.rows_rejected
    assert (len(kept), account.rows_rejected) == (case.good, case.bad)
    assert len(Path(f"{path}.rejected.jsonl").read_bytes().splitlines()) == case.bad
