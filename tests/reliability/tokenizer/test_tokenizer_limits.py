"""A tokenizer.json that makes texts explode, or gives one id twice, is refused by name."""

from __future__ import annotations

import base64
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tiny_vocabulary

from bertsmith.errors import FolderError, UnsafeFileError
from bertsmith.folders.read import load_tokenizer
from bertsmith.text.learn import learn_vocabulary
from bertsmith.text.tokenizer import Tokenizer

pytestmark = pytest.mark.reliability

State = dict[str, Any]
HUGE = 10_000_000


def replace_step(content: str, **pattern: str) -> State:
    return {"type": "Replace", "pattern": pattern, "content": content}


def sequence(*steps: State, key: str = "normalizers") -> State:
    return {"type": "Sequence", key: list(steps)}


def charsmap(entry: bytes) -> State:
    table = (4).to_bytes(4, "little") + b"\0" * 4 + b"x\0" + entry + b"\0"
    return {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(table).decode()}


def template(specials: int) -> State:
    mark = {"SpecialToken": {"id": "[CLS]", "type_id": 0}}
    text = [{"Sequence": {"id": name, "type_id": 0}} for name in "AB"]
    return {
        "type": "TemplateProcessing",
        "single": [mark] * specials + text[:1],
        "pair": [mark] * specials + text,
        "special_tokens": {"[CLS]": {"id": "[CLS]", "ids": [2], "tokens": ["[CLS]"]}},
    }


HOSTILE: dict[str, tuple[dict[str, Any], str]] = {
    "prepend": (
        {"normalizer": {"type": "Prepend", "prepend": "a" * HUGE}},
        "normalizer, Prepend: prepend has 10,000,000 characters",
    ),
    "replace": (
        {"normalizer": sequence(replace_step("b" * HUGE, String="a"))},
        "normalizer, Replace: content has 10,000,000 characters",
    ),
    "many small ones": (
        {"normalizer": sequence(*[replace_step("aa", String="a")] * 30)},
        "normalizer: its steps up to Replace can make a text more than 64 times as long",
    ),
    "nested": (
        {"normalizer": sequence(*[sequence(replace_step("aa", Regex="a"))] * 30)},
        "more than 64 times as long",
    ),
    "between any two characters": (
        {"normalizer": sequence(*[replace_step(" ", Regex="")] * 20)},
        "more than 64 times as long",
    ),
    "byte level again and again": (
        {"pre_tokenizer": sequence(*[{"type": "ByteLevel"}] * 12, key="pretokenizers")},
        "pre_tokenizer: its steps up to ByteLevel",
    ),
    "many steps": (
        {"normalizer": sequence(*[{"type": "NFC"}] * 100_000)},
        "have more than 64 steps",
    ),
    "sentencepiece table": (
        {"normalizer": charsmap(b"z" * HUGE)},
        "normalizer, Precompiled: an entry has 10,000,000 characters",
    ),
    "template": (
        {"post_processor": template(10_000)},
        "places 10,000 special tokens around a text",
    ),
    "template names": (
        {"post_processor": {**template(1), "special_tokens": {"x" * HUGE: {"ids": [2]}}}},
        "post_processor, TemplateProcessing: special_tokens has 10,000,000 characters",
    ),
    "decoder": (
        {"decoder": {"type": "WordPiece", "prefix": "#" * HUGE, "cleanup": True}},
        "decoder, WordPiece: prefix has 10,000,000 characters",
    ),
}


def state() -> State:
    found: State = json.loads(tiny_vocabulary.bert().files()["tokenizer.json"])
    return found


def read(changed: State) -> Tokenizer:
    return Tokenizer.from_files({"tokenizer.json": json.dumps(changed).encode()})


@pytest.mark.parametrize("name", HOSTILE)
def test_growth_is_refused_by_name_and_at_once(name: str) -> None:
    change, message = HOSTILE[name]
    start = time.process_time()  # not the clock: the machine may be busy
    with pytest.raises(FolderError) as caught:
        read(state() | change)
    assert time.process_time() - start < 5
    assert message in str(caught.value)
    assert "tokenizer.json" in str(caught.value)
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("continuing_subword_prefix", "#" * HUGE, "continuing_subword_prefix has 10,000,000"),
        ("max_input_chars_per_word", 10**9, "max_input_chars_per_word is 1,000,000,000"),
    ],
)
def test_the_model_is_bounded_too(key: str, value: object, message: str) -> None:
    changed = state()
    changed["model"][key] = value
    with pytest.raises(FolderError, match=message):
        read(changed)


def names_of_a_template(found: State) -> None:
    marks = {f"s{n}": {"id": f"s{n}", "ids": [2], "tokens": ["[CLS]"]} for n in range(100_000)}
    found["post_processor"] = {**template(1), "special_tokens": marks}


def places_of_a_template(found: State) -> None:
    found["post_processor"] = template(100_000)


def ids_of_a_special_token(found: State) -> None:
    mark = {"id": "[CLS]", "ids": [2] * 100_000, "tokens": ["[CLS]"] * 100_000}
    found["post_processor"] = {**template(1), "special_tokens": {"[CLS]": mark}}


def a_far_id(found: State) -> None:
    found["model"]["vocab"]["far"] = 2**31 - 1


def a_million_tokens(found: State) -> None:
    found["model"]["vocab"] |= {f"t{n}": 1_000 + n for n in range(1_100_000)}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (names_of_a_template, "100,000 special tokens around a text; more than 64"),
        (places_of_a_template, "100,000 special tokens around a text; more than 64"),
        (ids_of_a_special_token, "100,000 special tokens around a text; more than 64"),
        (a_far_id, "gives a token the id 2,147,483,647; more than 4,194,304"),
        (a_million_tokens, "tokens; more than 1,048,576 is refused"),
    ],
)
def test_sizes_are_refused_before_anything_is_built(
    change: Callable[[State], None], message: str
) -> None:
    found = state()
    change(found)
    begun = time.process_time()
    with pytest.raises(FolderError, match=message):
        read(found)
    assert time.process_time() - begun < 4


def test_as_many_special_tokens_as_are_allowed_pass() -> None:
    assert len(read({**state(), "post_processor": template(64)}).encode("a").ids) > 64


def test_the_usual_steps_pass() -> None:
    """What ALBERT, XLM-R and DeBERTa ship."""
    usual = sequence(
        replace_step('"', String="``"),
        {"type": "NFKD"},
        {"type": "StripAccents"},
        {"type": "Lowercase"},
        replace_step(" ", Regex=" {2,}"),
        replace_step(" ", Regex=r"\s+"),
    )
    assert read(state() | {"normalizer": usual}).encode("Ab  c").tokens[1:-1] == ["a", "##b", "c"]
    for kind in ("byte-bpe", "unigram"):
        learned = learn_vocabulary(["some words to learn"] * 9, kind=kind, size=300)
        assert Tokenizer.from_files(learned.files()).vocab_size == learned.vocab_size


def word_with_the_id_of_sep(found: State) -> None:
    found["model"]["vocab"]["word"] = found["model"]["vocab"]["[SEP]"]


def added_token_with_the_id_of_sep(found: State) -> None:
    token = {**found["added_tokens"][0], "content": "<new>", "special": False}
    found["added_tokens"].append({**token, "id": found["model"]["vocab"]["[SEP]"]})


def two_added_tokens_with_one_id(found: State) -> None:
    token = {**found["added_tokens"][0], "id": 900, "special": False}
    found["added_tokens"] += [{**token, "content": "<a>"}, {**token, "content": "<b>"}]


@pytest.mark.parametrize(
    ("change", "names"),
    [
        (word_with_the_id_of_sep, ("'[SEP]'", "'word'")),
        (added_token_with_the_id_of_sep, ("'[SEP]'", "'<new>'")),
        (two_added_tokens_with_one_id, ("'<a>'", "'<b>'")),
    ],
)
def test_two_tokens_with_one_id_are_refused(
    change: Callable[[State], None], names: tuple[str, str]
) -> None:
    changed = state()
    change(changed)
    with pytest.raises(FolderError, match="needs an id of its own") as caught:
        read(changed)
    assert all(name in str(caught.value) for name in names)


def test_a_list_of_added_tokens_cannot_take_the_id_of_sep() -> None:
    files = tiny_vocabulary.bert_files() | {"added_tokens.json": b'{"<new>": 3}'}
    with pytest.raises(FolderError, match=r"gives the id 3 to '\[SEP\]' and to '<new>'"):
        Tokenizer.from_files(files)


def test_a_template_cannot_place_another_id_for_sep() -> None:
    changed = state()
    changed["post_processor"]["special_tokens"]["[SEP]"]["ids"] = [77]
    with pytest.raises(FolderError, match=r"places id 77 for '\[SEP\]', whose id is 3"):
        read(changed)


@pytest.mark.parametrize("name", ["vocab.txt", "tokenizer_config.json"])
def test_a_symbolic_link_is_refused_from_python_as_on_the_command_line(
    tmp_path: Path, name: str
) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    for file, data in tiny_vocabulary.bert_files().items():
        (folder / file).write_bytes(data)
    (tmp_path / "secret").write_bytes((folder / name).read_bytes())
    (folder / name).unlink()
    (folder / name).symlink_to(tmp_path / "secret")
    for read_it in (Tokenizer.from_folder, load_tokenizer):
        with pytest.raises(UnsafeFileError, match="symbolic link"):
            read_it(folder)


def test_a_pipe_does_not_hang_and_a_missing_folder_is_named(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "tokenizer.json")
    with pytest.raises(UnsafeFileError, match="a pipe"):
        Tokenizer.from_folder(tmp_path)
    with pytest.raises(FolderError, match="no folder at"):
        Tokenizer.from_folder(tmp_path / "nothing")
