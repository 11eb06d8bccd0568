"""Vocabularies that are learned: right, whole, and the same bytes every time."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
from small_tokenizers import corpus
from transformers import AutoTokenizer

from bertsmith.errors import ConfigError, TextError
from bertsmith.text.learn import learn_vocabulary
from bertsmith.text.tokenizer import Tokenizer
from bertsmith.text.tokenizer_files import tokenizer_files

KINDS = ["wordpiece", "byte-bpe", "unigram"]
SIZE = {"wordpiece": 120, "byte-bpe": 320, "unigram": 120}
CHILD = """
import sys, hashlib
sys.path[:0] = {paths!r}
from small_tokenizers import corpus
from bertsmith.text.learn import learn_vocabulary
from bertsmith.text.tokenizer_files import tokenizer_files
made = learn_vocabulary(corpus(), kind={kind!r}, size={size})
print(hashlib.sha256(b"".join(tokenizer_files(made._source).values())).hexdigest())
"""


def digest(made: Tokenizer) -> str:
    return hashlib.sha256(b"".join(tokenizer_files(made._source).values())).hexdigest()


@pytest.mark.parametrize("kind", KINDS)
def test_a_vocabulary_has_the_size_asked_for_and_covers_its_text(kind) -> None:
    made = learn_vocabulary(corpus(), kind=kind, size=SIZE[kind])
    assert made.vocab_size == SIZE[kind]
    for line in corpus()[:20]:
        encoding = made.encode(line)
        assert made.special.unk not in encoding.ids
        assert len(encoding) < len(line)
    assert len(made.encode("playing")) <= 5


def test_wordpiece_starts_with_the_special_tokens_and_the_letters() -> None:
    made = learn_vocabulary(corpus(), size=120)
    first = [made.id_to_token(i) for i in range(5)]
    assert first == ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    assert "##ing" in {made.id_to_token(i) for i in range(120)}


@pytest.mark.parametrize("kind", KINDS)
def test_hash_seed_and_threads_change_no_byte(kind) -> None:
    here = digest(learn_vocabulary(corpus(), kind=kind, size=SIZE[kind]))
    paths = [str(Path(__file__).parent), str(Path(__file__).parents[2] / "src")]
    code = CHILD.format(paths=paths, kind=kind, size=SIZE[kind])
    for seed, threads in (("0", "1"), ("1", "2")):
        env = {**os.environ, "PYTHONHASHSEED": seed, "RAYON_NUM_THREADS": threads}
        found = subprocess.run(
            [sys.executable, "-c", code], env=env, capture_output=True, text=True
        )
        assert found.stdout.strip() == here, found.stderr


@pytest.mark.parametrize("kind", KINDS)
def test_the_order_of_lines_changes_no_byte(kind) -> None:
    lines = corpus()
    assert digest(learn_vocabulary(lines, kind=kind, size=SIZE[kind])) == digest(
        learn_vocabulary(iter(lines[::-1]), kind=kind, size=SIZE[kind])
    )


@pytest.mark.parametrize("kind", KINDS)
def test_a_learned_folder_loads_here_and_in_transformers(kind, tmp_path: Path) -> None:
    made = learn_vocabulary(corpus(), kind=kind, size=SIZE[kind])
    made.save(tmp_path)
    ours, theirs = Tokenizer.from_folder(tmp_path), AutoTokenizer.from_pretrained(tmp_path)
    for text in ("Played, singing! 我爱", "Ünbelievable's  piece", ""):
        ids = made.encode(text, "word").ids.tolist()
        assert ours.encode(text, "word").ids.tolist() == ids
        assert theirs(text, "word")["input_ids"] == ids


def test_cased_vocabularies_keep_capitals() -> None:
    lines = ["Paris Berlin Paris", "Paris paris"] * 20
    cased = learn_vocabulary(lines, size=60, lowercase=False)
    assert cased.token_to_id("Paris") is not None
    assert learn_vocabulary(lines, size=60).token_to_id("Paris") is None


def test_a_small_corpus_gives_fewer_tokens_and_says_so(caplog) -> None:
    made = learn_vocabulary(["a b", "b a"], size=1000)
    assert made.vocab_size < 1000
    assert "fewer than the requested 1000" in caplog.text


def test_rare_characters_give_way_when_the_vocabulary_is_small(caplog) -> None:
    lines = ["".join(chr(0x4E00 + i) for i in range(500)), "好好好 ok ok ok"]
    made = learn_vocabulary(lines, size=50)
    assert made.vocab_size == 50
    assert made.token_to_id("好") is not None
    assert "rare characters do not fit" in caplog.text


def test_progress_is_told() -> None:
    told: list[str] = []
    learn_vocabulary(corpus(), size=100, progress=lambda stage, done, total: told.append(stage))
    assert told[0] == "reading"
    assert "learning" in told


def test_impossible_wishes_are_refused() -> None:
    with pytest.raises(ConfigError, match="at least"):
        learn_vocabulary(["a"], size=3)
    with pytest.raises(ConfigError, match="keeps case"):
        learn_vocabulary(["a"], size=300, kind="byte-bpe", lowercase=True)
    with pytest.raises(ConfigError, match="wordpiece"):
        learn_vocabulary(["a"], size=300, kind="wordpeice")
    for empty in ([], [""], ["  \n "]):
        with pytest.raises(TextError, match="nothing to learn"):
            learn_vocabulary(empty, size=30)
    with pytest.raises(TextError, match="line 2 is of type bytes"):
        learn_vocabulary(["a", b"b"], size=30)
