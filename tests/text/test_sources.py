"""Folders of every dialect, and folders that are broken: named, never a crash."""

import contextlib
import json
import logging

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_tokenizers import albert_files, bert_files, bert_vocab, roberta_files

from bertsmith.errors import BertsmithError, FolderError
from bertsmith.text.tokenizer import Tokenizer
from bertsmith.text.tokenizer_files import MAX_BYTES


def saved(files: dict[str, bytes]) -> dict[str, bytes]:
    from bertsmith.text.tokenizer_files import tokenizer_files

    return tokenizer_files(Tokenizer.from_files(files)._source)


def edited(change) -> dict[str, bytes]:
    state = json.loads(saved(bert_files())["tokenizer.json"])
    change(state)
    return {"tokenizer.json": json.dumps(state).encode()}


BROKEN = {
    "nothing": ({}, "no tokenizer found"),
    "only settings": ({"tokenizer_config.json": b"{}"}, "no tokenizer found"),
    "merges without vocab": ({"merges.txt": b"a b\n"}, "no tokenizer found"),
    "not json": ({"tokenizer.json": b"{"}, "tokenizer.json is not valid JSON"),
    "a list": ({"tokenizer.json": b"[]"}, "tokenizer.json must hold a JSON object"),
    "a deep list": ({"tokenizer.json": b"[" * 200_000}, "tokenizer.json is not valid JSON"),
    "no model": ({"tokenizer.json": b"{}"}, "no model with a vocabulary"),
    "no utf-8": ({"vocab.txt": b"[UNK]\n\xff\n"}, "vocab.txt is not UTF-8 at byte 6"),
    "no unk": ({"vocab.txt": b"a\nb\n"}, "no \\[UNK\\] token"),
    "bad settings": ({**bert_files(), "tokenizer_config.json": b"nope"}, "tokenizer_config.json"),
    "text ids": ({"vocab.json": b'{"a": "b"}', "merges.txt": b""}, "whole numbers"),
    "bad merge": ({**roberta_files(), "merges.txt": b"#version: 0.2\na b\na b c\n"}, "line 3"),
    "lost merge": ({**roberta_files(), "merges.txt": b"xyz zyx\n"}, "tokenizer.json does not"),
    "empty spiece": ({"spiece.model": b""}, "spiece.model is not a sentencepiece model"),
    "cut spiece": ({"spiece.model": albert_files()["spiece.model"][:5000]}, "spiece.model"),
    "huge": ({"vocab.txt": b"\n" * (MAX_BYTES + 1)}, "more than 67,108,864 is refused"),
    "bad template": (
        edited(lambda s: s.update(post_processor={"type": "TemplateProcessing"})),
        "malformed",
    ),
    "odd template": (edited(lambda s: s.update(post_processor={"type": "Nope"})), "unknown type"),
    "odd model": (edited(lambda s: s["model"].update(type="Nope")), "tokenizer.json"),
    "odd normalizer": (edited(lambda s: s.update(normalizer={"type": "Nope"})), "tokenizer.json"),
    "float ids": (edited(lambda s: s["model"]["vocab"].update(a=1.5)), "whole numbers"),
    "bad added": (edited(lambda s: s.update(added_tokens=[3])), "added_tokens"),
    "half added": (edited(lambda s: s.update(added_tokens=[{"content": "x"}])), "tokenizer.json"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_folder_is_named(name) -> None:
    files, message = BROKEN[name]
    with pytest.raises(FolderError, match=message):
        Tokenizer.from_files(files)


def test_a_template_with_a_foreign_id_is_refused() -> None:
    def change(state) -> None:
        state["post_processor"]["special_tokens"]["[CLS]"]["ids"] = [10**6]

    with pytest.raises(FolderError, match="1000000"):
        Tokenizer.from_files(edited(change))


@pytest.mark.parametrize("value", [3, "x", [1], {"type": "Sequence", "processors": [3]}])
def test_a_post_processor_of_another_type_is_refused(value) -> None:
    def change(state) -> None:
        state["post_processor"] = value

    with pytest.raises(FolderError, match="tokenizer"):
        Tokenizer.from_files(edited(change))


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_flipped_bytes_give_our_errors_or_a_tokenizer(data) -> None:
    kind = data.draw(st.sampled_from(["tokenizer.json", "spiece.model", "vocab.txt"]))
    whole = {"tokenizer.json": SAVED, "spiece.model": ALBERT, "vocab.txt": VOCAB}[kind]
    changed = bytearray(whole)
    for _ in range(data.draw(st.integers(1, 4))):
        changed[data.draw(st.integers(0, len(changed) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(BertsmithError):
        encoding = Tokenizer.from_files({kind: bytes(changed)}).encode("he likes playing")
        assert len(encoding.ids) == len(encoding.offsets)


SAVED = saved(bert_files())["tokenizer.json"]
ALBERT = albert_files()["spiece.model"]
VOCAB = bert_files()["vocab.txt"]


@pytest.mark.parametrize(("cased", "word"), [(False, "he"), (True, "He")])
def test_case_is_guessed_from_the_vocabulary_when_no_file_tells(cased, word, caplog) -> None:
    tokens = (
        bert_vocab(cased) if cased else [t for t in bert_vocab() if t == t.lower() or t[0] == "["]
    )
    with caplog.at_level(logging.WARNING):
        made = Tokenizer.from_files({"vocab.txt": "\n".join(tokens).encode()})
    assert word in made.encode("He").tokens
    assert "cased" in caplog.text


def test_line_ends_of_windows_and_a_byte_order_mark_change_nothing() -> None:
    plain = Tokenizer.from_files(bert_files())
    odd = bert_files()
    odd["vocab.txt"] = b"\xef\xbb\xbf" + odd["vocab.txt"].replace(b"\n", b"\r\n")
    assert (
        Tokenizer.from_files(odd).encode("He likes playing").ids.tolist()
        == plain.encode("He likes playing").ids.tolist()
    )


def test_tokens_of_a_folder_beyond_the_control_roles_match_in_texts() -> None:
    def change(state) -> None:
        token = {**state["added_tokens"][0], "content": "[NEW]", "special": True}
        state["added_tokens"].append({**token, "id": len(state["model"]["vocab"])})

    made = Tokenizer.from_files(edited(change))
    assert made.encode("a [NEW] b").ids[2] == made.vocab_size - 1


def test_a_tokenizer_that_splits_only_at_spaces_cannot_be_forged_either() -> None:
    def change(state) -> None:
        state["pre_tokenizer"] = {"type": "WhitespaceSplit"}
        state["normalizer"] = None
        state["added_tokens"] = []

    made = Tokenizer.from_files(edited(change))
    ids = made.encode("he [SEP] [MASK] he").ids[1:-1].tolist()
    assert ids[0] == ids[-1] == made.token_to_id("he")
    assert not {made.special.sep, made.special.mask}.intersection(ids)
    assert made.special.mask in made.encode("[MASK]", allow_special=True).ids
    assert made.token_to_id("[SEP]") == made.special.sep == 3


def test_the_oldest_tokenizer_json_without_a_model_type_is_read() -> None:
    def change(state) -> None:
        del state["model"]["type"]

    assert Tokenizer.from_files(edited(change)).encode("he likes").tokens[1:3] == ["he", "likes"]
