"""Any bytes under any name: examples, or an error that was meant; every row is accounted for.

BERTSMITH_LONG=1 tries more of them.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from broken_json import CHOICES, ROWS, SPANS
from broken_questions import LINES, PLAIN
from broken_tables import CSV, MANY, PICK, TSV
from broken_tags import BIO, BMES, FOUR, WIKI
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bertsmith.errors import BertsmithError
from bertsmith.labeled import DataSpec, read_examples
from bertsmith.labeled.example import BY_TASK as TASKS
from bertsmith.labeled.formats import FORMATS

pytestmark = pytest.mark.reliability
CASES = 5_000 if os.environ.get("BERTSMITH_LONG") else 300
MUCH = settings(max_examples=CASES, deadline=None, suppress_health_check=list(HealthCheck))
ENDINGS = [".tsv", ".csv", ".txt", ".jsonl", ".json", ".conll", ".tsv.gz", "", ".rejected.jsonl"]
GOOD = [
    *("\n".join(rows) for rows in (ROWS, CHOICES, SPANS, TSV, CSV, MANY, PICK)),
    *(BIO, BMES, FOUR, WIKI, PLAIN, LINES),
]
PIECES = [b"\n", b"\r", b"\t", b",", b'"', b"\0", b"\xff", b"\xef\xbb\xbf", b"{", b"[", b"]", b"}"]
SPEC = st.fixed_dictionaries(
    {},
    optional={"format": st.sampled_from(sorted(FORMATS)), "task": st.sampled_from(sorted(TASKS))},
)


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """A good file with pieces taken out, put in or doubled."""
    data = draw(st.sampled_from(GOOD)).encode()
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(data)))
        end = min(len(data), start + draw(st.integers(0, 6)))
        middle = draw(st.sampled_from([b"", data[start:end] * 2, *PIECES]))
        data = data[:start] + middle + data[end:]
    return data


def assert_accounted_for(path: Path, spec: DataSpec) -> None:
    rows, found, said = None, [], None
    try:
        rows = read_examples(path, spec, on_error="skip")
        found = list(rows)
    except BertsmithError as error:
        said = error
    if said is not None:
        assert said.exit_code == 2, said
        assert str(path.parent) in str(said) or "column" in str(said), said
    elif rows is not None:
        assert rows.account.rows_ok == len(found)
        assert all(example.texts and example.line > 0 for example in found)
    if rows is not None:
        assert rows.account.rows_in == rows.account.rows_ok + rows.account.rows_rejected


@MUCH
@given(st.binary(max_size=80) | damaged(), st.sampled_from(ENDINGS), SPEC)
def test_nothing_but_an_error_that_was_meant(tmp_path_factory, data, ending, given_spec) -> None:
    path = tmp_path_factory.mktemp("any") / f"a{ending}"
    path.write_bytes(data)
    if ending == ".rejected.jsonl":
        (path.parent / "a").write_bytes(data)
    assert_accounted_for(path, DataSpec(**given_spec))


@MUCH
@given(damaged())
def test_a_damaged_file_is_read_or_named(tmp_path_factory, data) -> None:
    path = tmp_path_factory.mktemp("any") / "a.txt"
    path.write_bytes(data)
    assert_accounted_for(path, DataSpec())
