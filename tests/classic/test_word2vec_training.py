"""word2vec runs: losses that fall, runs that repeat, kills, Ctrl-C, folders, refusals."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from gensim.models import KeyedVectors
from word2vec_reference import MODES, text_stream

from bertsmith.classic.stream.folder import WordStream
from bertsmith.classic.word2vec import train
from bertsmith.classic.word2vec.engines import choose_engine
from bertsmith.classic.word2vec.folder import open_model, read_counts, read_outputs
from bertsmith.classic.word2vec.settings import Word2VecSettings
from bertsmith.classic.word2vec.tables import Tables
from bertsmith.classic.word2vec.train import run_epoch, train_word2vec
from bertsmith.config import validated
from bertsmith.errors import ConfigError, DivergedError, FolderError, InputFileError, WriteError
from bertsmith.objectives.masking.similar import read_neighbors

pytestmark = pytest.mark.usefixtures("edited_folders")

ENGINES = ["auto", "torch"]


@pytest.fixture(scope="module")
def stream() -> WordStream:
    return text_stream(lines=900)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("model", "loss"), MODES)
def test_the_loss_falls_in_every_epoch(
    stream: WordStream, model: str, loss: str, engine: str
) -> None:
    settings = Word2VecSettings(model=model, loss=loss, dim=24, epochs=4, sample=0.01)
    found = train_word2vec(stream, settings, threads=1, engine=engine)  # type: ignore[arg-type]
    assert len(found.losses) == 4
    assert all(
        later < earlier for earlier, later in zip(found.losses, found.losses[1:], strict=False)
    )
    assert found.vectors.matrix.shape == (len(stream.words) - 1, 24)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_text_without_two_neighbors_is_refused_with_the_way_out(engine: str) -> None:
    stream = text_stream(lines=3)
    settings = Word2VecSettings(dim=8, epochs=2, sample=1e-12)
    with pytest.raises(ConfigError, match=r"epoch 1 has no two words .*; give more text, or a sam"):
        train_word2vec(stream, settings, threads=1, engine=engine)  # type: ignore[arg-type]


@pytest.mark.parametrize("engine", ENGINES)
def test_vectors_learn_which_words_stand_together(engine: str) -> None:
    stream = text_stream(lines=3_000)
    settings = Word2VecSettings(dim=24, epochs=6, sample=0.0)
    found = train_word2vec(stream, settings, threads=2, engine=engine)  # type: ignore[arg-type]
    # Words of one topic have the same number modulo 8 in the order they were made.
    unit = found.vectors.unit[:40]
    cosines = unit @ unit.T
    topic = np.array([topic_of(word) for word in found.vectors.words[:40]])
    same = (topic[:, None] == topic) & ~np.eye(40, dtype=bool) & (topic != 0)
    other = (topic[:, None] != topic) & (topic[:, None] != 0) & (topic != 0)
    assert cosines[same].mean() > cosines[other].mean() + 0.2


def topic_of(word: str) -> int:
    """The topic of a word of `text_stream`, found by making the words again."""
    rng = np.random.default_rng(0)
    rows = []
    for _ in range(3_000):
        topic = rng.integers(0, 8)
        drawn = rng.zipf(1.5, rng.integers(1, 25)) % (300 // 8)
        rows.append(drawn * 8 + np.where(rng.random(len(drawn)) < 0.8, topic, 0))
    known, counts = np.unique(np.concatenate(rows), return_counts=True)
    return int(known[np.argsort(-counts, kind="stable")][int(word[1:])] % 8)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("model", "loss"), MODES[:2])
def test_one_thread_repeats_bit_for_bit_and_a_seed_changes_it(
    stream: WordStream, engine: str, model: str, loss: str
) -> None:
    def run(seed: int) -> bytes:
        settings = Word2VecSettings(model=model, loss=loss, dim=10, epochs=2, seed=seed)
        found = train_word2vec(stream, settings, threads=1, engine=engine)  # type: ignore[arg-type]
        return found.vectors.matrix.tobytes()

    assert run(1) == run(1)
    assert run(1) != run(2)


def test_a_run_resumes_after_its_last_epoch_with_the_same_bytes(
    stream: WordStream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = Word2VecSettings(dim=10, epochs=3)
    train_word2vec(stream, settings, tmp_path / "whole", threads=1)
    done: list[int] = []

    def interrupted(*arguments: object, epoch: int, **more: object) -> tuple[float, float]:
        if epoch == 2 and not done:
            done.append(epoch)
            raise KeyboardInterrupt
        return run_epoch(*arguments, epoch=epoch, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(train, "run_epoch", interrupted)
    with pytest.raises(KeyboardInterrupt):
        train_word2vec(stream, settings, tmp_path / "parts", threads=1)
    assert not (tmp_path / "parts").exists()
    seen: list[int] = []
    train_word2vec(
        stream, settings, tmp_path / "parts", threads=1, watch=lambda look: seen.append(look.epoch)
    )
    assert set(seen) == {3}
    for path in (tmp_path / "whole").iterdir():
        assert path.read_bytes() == (tmp_path / "parts" / path.name).read_bytes(), path.name
    assert sorted(path.name for path in tmp_path.iterdir()) == ["parts", "whole"]


KILLED = """
import os, signal, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from word2vec_reference import text_stream
from bertsmith.classic.word2vec import folder, train
from bertsmith.classic.word2vec.settings import Word2VecSettings
kill_at = int(sys.argv[3])
calls = [0]
def step(original):
    def run(*arguments, **more):
        calls[0] += 1
        if calls[0] == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)
        return original(*arguments, **more)
    return run
folder.write_file = step(folder.write_file)
folder.np.save = step(folder.np.save)
folder.write_word_vectors = step(folder.write_word_vectors)
train.run_epoch = step(train.run_epoch)
train.train_word2vec(
    text_stream(lines=200), Word2VecSettings(dim=6, epochs=2), Path(sys.argv[2]), threads=1
)
"""


def test_a_kill_at_any_moment_loses_at_most_an_epoch(tmp_path: Path) -> None:
    choose_engine()
    here = str(Path(__file__).parent)

    def run(out: Path, kill_at: int) -> int:
        command = [sys.executable, "-c", KILLED, here, str(out), str(kill_at)]
        return subprocess.run(command, env=dict(os.environ), timeout=120).returncode

    assert run(tmp_path / "whole", 0) == 0
    for kill_at in (2, 4, 7, 3, 5, 4):  # inside checkpoints, between them, inside the folder
        assert run(tmp_path / "killed", kill_at) == -signal.SIGKILL
        assert not (tmp_path / "killed").exists()
    assert run(tmp_path / "killed", 0) == 0
    for path in (tmp_path / "whole").iterdir():
        assert path.read_bytes() == (tmp_path / "killed" / path.name).read_bytes(), path.name
    assert sorted(path.name for path in tmp_path.iterdir()) == ["killed", "whole"]


@pytest.mark.parametrize("engine", ENGINES)
def test_ctrl_c_ends_a_long_epoch_within_a_second(stream: WordStream, engine: str) -> None:
    many = 400
    long = WordStream(
        ids=np.tile(stream.ids, many),
        starts=np.arange(len(stream.ids) * many // 20 + 1, dtype=np.int64) * 20,
        documents=stream.documents,
        words=stream.words,
        counts=stream.counts * many,
    )
    settings = Word2VecSettings(dim=100, epochs=100, sample=0.0)
    sent: list[float] = []

    def interrupt(look: object) -> None:
        if not sent:
            sent.append(time.monotonic())
            threading.Timer(0.05, lambda: os.kill(os.getpid(), signal.SIGINT)).start()

    before = threading.active_count()
    with pytest.raises(KeyboardInterrupt):
        train_word2vec(long, settings, threads=2, engine=engine, watch=interrupt)  # type: ignore[arg-type]
    assert time.monotonic() - sent[0] < 5.0  # a second of work on a machine that is busy
    assert threading.active_count() <= before + 1


def test_the_folder_is_read_by_gensim_and_by_masking(stream: WordStream, tmp_path: Path) -> None:
    settings = Word2VecSettings(dim=10, epochs=1, loss="hierarchical")
    found = train_word2vec(stream, settings, tmp_path / "v", threads=1)
    theirs = KeyedVectors.load_word2vec_format(str(tmp_path / "v" / "vectors.bin"), binary=True)
    assert theirs.index_to_key == list(found.vectors.words)
    assert theirs.vectors.tobytes() == found.vectors.matrix.tobytes()
    opened = open_model(tmp_path / "v")
    assert opened.vectors.matrix.tobytes() == found.vectors.matrix.tobytes()
    assert (opened.losses, opened.settings) == (found.losses, settings)
    assert read_outputs(tmp_path / "v").shape == (len(found.vectors) - 1, 10)
    assert read_counts(tmp_path / "v").tolist() == stream.counts[1:].tolist()
    near = read_neighbors(tmp_path / "v", words=50, neighbors=2)
    first = WordVectorsOf(found.vectors.words[:50], found.vectors.matrix[:50])
    assert near["w0"] == [word for word, _ in first.near("w0", 2)]


def WordVectorsOf(words: tuple[str, ...], matrix: np.ndarray):
    from bertsmith.classic.word_vectors.word_vectors import WordVectors

    return WordVectors(words, matrix)


def test_a_finished_folder_is_opened_and_another_one_is_not_replaced(
    stream: WordStream, tmp_path: Path
) -> None:
    settings = Word2VecSettings(dim=4, epochs=1)
    first = train_word2vec(stream, settings, tmp_path / "v", threads=1)
    again = train_word2vec(stream, settings, tmp_path / "v", threads=1)
    assert again.vectors.matrix.tobytes() == first.vectors.matrix.tobytes()
    with pytest.raises(WriteError, match="of another text or other settings"):
        train_word2vec(stream, Word2VecSettings(dim=5), tmp_path / "v", threads=1)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    with pytest.raises(WriteError, match="is no folder of word vectors"):
        train_word2vec(stream, settings, tmp_path / "mine", threads=1)
    config = json.loads((tmp_path / "v" / "config.json").read_text())
    (tmp_path / "v" / "config.json").write_text(json.dumps({**config, "vocab_size": 3}))
    with pytest.raises(FolderError, match="says otherwise"):
        open_model(tmp_path / "v")


def test_texts_without_two_words_are_refused() -> None:
    one = WordStream(
        ids=np.array([1, 1, 0], dtype=np.int32),
        starts=np.array([0, 3], dtype=np.int64),
        documents=np.array([0, 1], dtype=np.int64),
        words=("<unk>", "word"),
        counts=np.array([1, 2], dtype=np.int64),
    )
    with pytest.raises(InputFileError, match=r"1 different words.*lower the minimum count"):
        Tables.of(one, Word2VecSettings())


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("model", "loss"), MODES)
def test_two_words_and_one_line_are_enough(model: str, loss: str, engine: str) -> None:
    two = WordStream(
        ids=np.array([1, 2, 1], dtype=np.int32),
        starts=np.array([0, 3], dtype=np.int64),
        documents=np.array([0, 1], dtype=np.int64),
        words=("<unk>", "a", "b"),
        counts=np.array([0, 2, 1], dtype=np.int64),
    )
    settings = Word2VecSettings(model=model, loss=loss, dim=3, epochs=2, sample=0.0)
    found = train_word2vec(two, settings, threads=1, engine=engine)  # type: ignore[arg-type]
    assert np.isfinite(found.vectors.matrix).all()
    assert np.isfinite(found.losses).all()


def test_settings_without_a_meaning_are_refused(stream: WordStream) -> None:
    for values, message in (
        ({"loss": "hierarchical", "negatives": 5}, "negatives has no meaning"),
        ({"loss": "hierarchical", "noise_power": 0.5}, "noise_power has no meaning"),
        ({"combine": "sum"}, "combine has no meaning with model skipgram"),
        ({"dim": 0}, "dim"),
        ({"rate": 2.0}, "rate"),
    ):
        with pytest.raises(ConfigError, match=message):
            validated(Word2VecSettings, values, "here")
    with pytest.raises(ConfigError, match="threads must be from 1"):
        train_word2vec(stream, Word2VecSettings(), threads=0)


def test_a_loss_that_is_not_finite_ends_the_run_with_a_remedy(stream: WordStream) -> None:
    class Broken:
        name = "broken"
        seen = np.zeros(1, dtype=np.int64)

        def run(self, first: int, last: int, seed: int) -> tuple[float, float]:
            return float("nan"), 1.0

    tables = Tables.of(stream, Word2VecSettings())
    with pytest.raises(DivergedError, match="lower rate"):
        run_epoch(Broken(), tables, seed=1, epoch=0, threads=1)
