"""Building a corpus: the same bytes however it is done, whatever ends it, and by one at a time."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import corpus_child
import pytest
from corpus_making import as_sentences, bert, fingerprint, make, some_documents
from import_path import import_path
from process_groups import group_ends

from bertsmith.corpus.build import build_corpus
from bertsmith.corpus.shards import verify
from bertsmith.corpus.sources import CorpusSettings
from bertsmith.errors import ConfigError, InputFileError, LockedError, WriteError
from bertsmith.files import resumable_file
from bertsmith.files.folder_lock import FolderLock

LONG = os.environ.get("BERTSMITH_LONG") == "1"
CHARACTERS = CorpusSettings(segmenter="character")


@pytest.fixture(scope="module")
def texts(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("texts") / "a.txt"
    path.write_text(as_sentences(some_documents(250)), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def whole(texts, tmp_path_factory) -> dict[str, str]:
    out = tmp_path_factory.mktemp("whole") / "shards"
    make(texts, out)
    return fingerprint(out)


def child(*arguments: object, **more: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, corpus_child.__file__, *map(str, arguments)],
        env=os.environ | {"PYTHONPATH": import_path()} | more,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


def finish(*arguments: object, **more: str) -> list[int]:
    done = child(*arguments, **more)
    out, err = done.communicate(timeout=120)
    assert done.returncode == 0, err.decode()
    return [int(number) for number in out.split()]


def hidden(folder: Path) -> list[str]:
    return [entry.name for entry in folder.iterdir() if entry.name.startswith(".")]


@pytest.mark.parametrize("size", [1, 37, 1000, 1 << 21])
def test_block_sizes_change_nothing(texts, whole, tmp_path, monkeypatch, size) -> None:
    monkeypatch.setattr("bertsmith.files.streams.CHUNK", min(size, 4096))
    path = texts
    if size == 1:  # every line is a block of its own: take less text
        path = tmp_path / "a.txt"
        path.write_text(as_sentences(some_documents(20)), encoding="utf-8")
        make(path, tmp_path / "other")
        whole = fingerprint(tmp_path / "other")
    import corpus_child

    monkeypatch.setattr("bertsmith.files.pool.ProcessPoolExecutor", corpus_child.HerePool)
    build_corpus([path], bert(), tmp_path / "out", CHARACTERS, block_bytes=size)
    assert fingerprint(tmp_path / "out") == whole


@pytest.mark.parametrize(("workers", "seed"), [(1, "0"), (2, "77")])
def test_workers_and_hash_seeds_change_nothing(texts, whole, tmp_path, workers, seed) -> None:
    finish(texts, tmp_path / "out", "--workers", workers, PYTHONHASHSEED=seed)
    assert fingerprint(tmp_path / "out") == whole
    assert hidden(tmp_path) == []


@pytest.mark.reliability
def test_killed_at_any_step_of_writing_the_same_call_ends_the_same(texts, whole, tmp_path) -> None:
    steps = range(1, 400) if LONG else (2, 9, 30, 77, 10_000)
    for step in steps:
        out = tmp_path / f"{step}" / "shards"
        first = child(texts, out, "--die-at", step, "--block", 4000)
        first.communicate(timeout=60)
        ended = first.returncode == 0
        assert ended or first.returncode == -signal.SIGKILL
        if out.exists():
            verify(out)
        finish(texts, out, "--die-at", 10_000, "--block", 4000)
        assert fingerprint(out) == whole, step
        assert hidden(out.parent) == []
        if ended:
            break
    assert ended


@pytest.mark.reliability
def test_killed_at_random_moments_no_worker_is_left_and_nothing_is_wrong(
    texts, whole, tmp_path
) -> None:
    start = time.monotonic()
    finish(texts, tmp_path / "timed" / "shards", "--workers", 2)
    usual = time.monotonic() - start
    rng = random.Random(8)
    for number in range(50 if LONG else 2):
        out = tmp_path / str(number) / "shards"
        first = child(texts, out, "--workers", 2)
        time.sleep(usual * rng.uniform(0.3, 1.0))
        first.kill()
        first.communicate(timeout=60)
        assert group_ends(first.pid), "workers outlive the build"
        if out.exists():
            verify(out)
        finish(texts, out, "--workers", 1)
        assert fingerprint(out) == whole
        assert hidden(out.parent) == []


def test_a_second_start_goes_on_where_the_first_was(texts, whole, tmp_path) -> None:
    out = tmp_path / "shards"
    first = child(texts, out, "--die-at", 100, "--block", 2000)
    first.communicate(timeout=60)
    _, resumed, _ = finish(texts, out, "--die-at", 10_000, "--block", 2000)
    assert resumed > 5
    assert fingerprint(out) == whole


def test_changed_text_begins_anew(texts, tmp_path) -> None:
    copy = tmp_path / "a.txt"
    copy.write_text(texts.read_text(encoding="utf-8"), encoding="utf-8")
    out = tmp_path / "shards"
    child(copy, out, "--die-at", 100, "--block", 2000).communicate(timeout=60)
    changed = "A new first line.\n" + texts.read_text(encoding="utf-8")
    copy.write_text(changed, encoding="utf-8")
    _, resumed, _ = finish(copy, out, "--die-at", 10_000, "--block", 2000)
    assert resumed == 0
    make(copy, tmp_path / "fresh")
    assert fingerprint(out) == fingerprint(tmp_path / "fresh")


def test_files_damaged_between_two_starts_are_not_trusted(texts, whole, tmp_path) -> None:
    out = tmp_path / "shards"
    child(texts, out, "--die-at", 100, "--block", 2000).communicate(timeout=60)
    tokens = tmp_path / ".shards.building" / "corpus" / "tokens.bin"
    data = bytearray(tokens.read_bytes())
    data[10] ^= 1
    tokens.write_bytes(data)
    _, resumed, _ = finish(texts, out, "--die-at", 10_000, "--block", 2000)
    assert resumed == 0
    assert fingerprint(out) == whole


def test_the_same_command_on_a_whole_corpus_has_nothing_to_do(texts, whole, tmp_path) -> None:
    out = tmp_path / "shards"
    _, first = make(texts, out)
    told: list[str] = []
    again = build_corpus([texts], bert(), out, CHARACTERS, notice=told.append)
    assert "nothing to do" in told[-1]
    assert (again.tokens, again.lengths) == (first.tokens, first.lengths)
    assert fingerprint(out) == whole
    with pytest.raises(WriteError, match="other texts"):
        build_corpus([texts], bert(lowercase=False), out, CHARACTERS)
    other = tmp_path / "b.txt"
    other.write_text("cat.\n")
    with pytest.raises(WriteError, match="other texts"):
        build_corpus([other], bert(), out, CHARACTERS)
    assert fingerprint(out) == whole
    assert hidden(tmp_path) == []


def test_a_folder_that_is_no_corpus_is_left_alone(texts, tmp_path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    with pytest.raises(WriteError, match="no corpus"):
        make(texts, tmp_path / "mine")
    assert (tmp_path / "mine" / "thesis.txt").exists()


def test_a_build_that_cannot_begin_leaves_nothing_behind(texts, tmp_path) -> None:
    with pytest.raises(ConfigError, match="segmenter"):
        make(texts, tmp_path / "shards", segmenter="jeiba")
    assert list(tmp_path.iterdir()) == []


def test_two_builds_in_one_place_do_not_meet(texts, tmp_path) -> None:
    with (
        FolderLock(tmp_path / ".shards.building", work="build", instead="--out"),
        pytest.raises(LockedError, match=f"process {os.getpid()} on "),
    ):
        make(texts, tmp_path / "shards")
    make(texts, tmp_path / "shards")


def test_a_repaired_file_goes_on_from_the_fault(tmp_path, monkeypatch) -> None:
    import corpus_child

    monkeypatch.setattr("bertsmith.files.pool.ProcessPoolExecutor", corpus_child.HerePool)
    monkeypatch.setattr("bertsmith.files.streams.CHUNK", 512)
    good = as_sentences(some_documents(100)).encode()
    path = tmp_path / "a.txt"
    path.write_bytes(good + b"\xff\n")
    with pytest.raises(InputFileError, match="byte 0xff"):
        build_corpus([path], bert(), tmp_path / "out", CHARACTERS, block_bytes=1000)
    path.write_bytes(good)
    report = build_corpus([path], bert(), tmp_path / "out", CHARACTERS, block_bytes=1000)
    assert report.resumed_blocks > 5
    assert hidden(tmp_path) == []


def test_a_full_disk_keeps_what_is_safe_and_says_so(texts, whole, tmp_path, monkeypatch) -> None:
    import corpus_child

    monkeypatch.setattr("bertsmith.files.pool.ProcessPoolExecutor", corpus_child.HerePool)
    monkeypatch.setattr(resumable_file, "SECONDS_BETWEEN_SAVES", 0.0)
    monkeypatch.setattr("bertsmith.files.streams.CHUNK", 512)
    real, calls = os.fsync, [0]

    def full(descriptor: int) -> None:
        calls[0] += 1
        if calls[0] == 60:
            raise OSError(28, "No space left on device")
        real(descriptor)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(WriteError, match="No space left") as caught:
        build_corpus([texts], bert(), tmp_path / "out", CHARACTERS, block_bytes=1000)
    assert "free" in str(caught.value)
    assert not (tmp_path / "out").exists()
    report = build_corpus([texts], bert(), tmp_path / "out", CHARACTERS, block_bytes=1000)
    assert report.resumed_blocks > 0
    assert fingerprint(tmp_path / "out") == whole


@pytest.mark.reliability
def test_everything_is_synced_before_the_name_appears(texts, tmp_path, monkeypatch) -> None:
    seen: list[int | str] = []
    fsync, rename = os.fsync, os.rename

    def synced(descriptor: int) -> None:
        fsync(descriptor)
        seen.append(os.fstat(descriptor).st_ino)

    def renamed(source: Path, target: Path) -> None:
        rename(source, target)
        seen.append(str(target))

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "rename", renamed)
    out = tmp_path / "shards"
    make(texts, out)
    before, after = seen[: seen.index(str(out))], seen[seen.index(str(out)) + 1 :]
    for name in fingerprint(out):
        assert (out / name).stat().st_ino in before, name
    assert before[-1] == out.stat().st_ino
    assert (out / "tokenizer").stat().st_ino in before
    assert after[0] == tmp_path.stat().st_ino


def test_one_line_of_20_megabytes_takes_bounded_memory(tmp_path) -> None:
    path = tmp_path / "a.txt"
    sentence = "The cat sat on the mat, unable to play. 我爱北京天安门。"
    path.write_text(sentence * (20_000_000 // len(sentence.encode())), encoding="utf-8")
    tokens, _, most = finish(path, tmp_path / "out", "--block", 1 << 21)
    assert tokens > 5_000_000
    assert most < 700, f"{most} MB"
    verify(tmp_path / "out")


def test_the_report_counts_what_is_there(tmp_path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("the cat.\nthe ж mat ж.\nplaying.\n\nunable жук.\n", encoding="utf-8")
    _, report = make(path, tmp_path / "out")
    assert (report.documents, report.sentences, report.tokens) == (2, 4, 3 + 5 + 3 + 4)
    assert report.lengths == {"p50": 3, "p95": 5, "p99": 5, "longest": 5}
    assert report.unknown_tokens == 3
    assert report.unknown == [("ж", 2), ("жук", 1)]
    assert report.characters == 8 + 12 + 8 + 11
    told = json.loads(json.dumps(report.as_dict()))
    assert told["unknown_share"] == pytest.approx(3 / 15)
    assert any("ж 2, жук 1" in line for line in report.lines())
