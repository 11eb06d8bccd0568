"""The Tokenizer: what an Encoding says, extra tokens, control tokens, saving."""

import json
from pathlib import Path

import numpy as np
import pytest
from small_tokenizers import SENTENCES, bert_files

from bertsmith.errors import ConfigError, TextError
from bertsmith.text.tokenizer import Tokenizer
from bertsmith.text.truncation import Truncation


def test_an_encoding_tells_ids_words_offsets_segments_and_fields(tokenizers) -> None:
    encoding = tokenizers["uncased"].encode("He likes playing.", "The cat")
    assert " ".join(encoding.tokens) == "[CLS] he likes play ##ing . [SEP] the cat [SEP]"
    assert encoding.words.tolist() == [-1, 0, 1, 2, 2, 3, -1, 4, 5, -1]
    assert encoding.segments.tolist() == [0] * 7 + [1] * 3
    assert encoding.fields.tolist() == [-1, 0, 0, 0, 0, 0, -1, 1, 1, -1]
    texts = ["He likes playing.", "The cat"]
    spans = [
        texts[f][a:b] for f, (a, b) in zip(encoding.fields, encoding.offsets, strict=True) if f >= 0
    ]
    assert spans == ["He", "likes", "play", "ing", ".", "The", "cat"]
    assert encoding.ids.dtype == encoding.offsets.dtype == np.int32
    assert encoding.cut == (0, 0)
    assert len(encoding) == 10


def test_control_tokens_in_a_text_stay_text(tokenizer: Tokenizer) -> None:
    unk = tokenizer.special.unk
    for token in sorted(tokenizer.control_tokens):
        number = tokenizer.token_to_id(token)
        for text in (token, f"a {token} b", f"a{token}b", token * 3, f" {token} "):
            inside = tokenizer.encode(text)
            inside = inside.ids[inside.fields >= 0]
            assert number == unk or number not in inside
            (fast,), _ = tokenizer.fast_ids([text], 512)
            assert number == unk or number not in fast[1:-1]


def test_control_tokens_in_a_text_count_when_asked_for(tokenizer: Tokenizer) -> None:
    name = sorted(tokenizer.control_tokens)[0]
    allowed = tokenizer.encode(f"a {name} b", allow_special=True)
    assert tokenizer.token_to_id(name) in allowed.ids


def test_extra_tokens_get_the_next_ids_and_match_in_texts(tokenizer: Tokenizer) -> None:
    size = tokenizer.vocab_size
    grown = tokenizer.add_tokens(["[CAT=CULTURE]", "[CAT=SPORT]", "[CAT=CULTURE]"])
    assert grown.vocab_size == size + 2
    assert tokenizer.vocab_size == size
    text = "x [CAT=CULTURE] y[CAT=SPORT]"
    encoding = grown.encode(text)
    where = encoding.ids.tolist().index(size)
    assert encoding.tokens[where] == "[CAT=CULTURE]"
    start, end = encoding.offsets[where]
    assert text[start:end].strip() == "[CAT=CULTURE]"
    assert size + 1 in encoding.ids
    assert "[CAT=SPORT]" in grown.decode(encoding.ids)
    again = grown.add_tokens(["[THIRD]"])
    assert again.token_to_id("[THIRD]") == size + 2
    assert size in again.encode(text).ids


def test_a_control_token_or_nothing_cannot_be_added(tokenizers) -> None:
    for token in ("[SEP]", "", "  ", "a\nb"):
        with pytest.raises(ConfigError):
            tokenizers["uncased"].add_tokens([token])


def test_an_extra_token_does_not_open_the_door_to_control_tokens(tokenizer: Tokenizer) -> None:
    grown = tokenizer.add_tokens(["[EXTRA]"])
    for token in grown.control_tokens:
        ids = grown.encode(f"[EXTRA]{token}[EXTRA]")
        inside = set(ids.ids[ids.fields >= 0].tolist())
        assert grown.token_to_id(token) not in inside - {grown.special.unk}


def test_saved_files_load_to_the_same_tokenizer(tokenizer: Tokenizer, tmp_path: Path) -> None:
    grown = tokenizer.add_tokens(["[CAT=CULTURE]"])
    grown.save(tmp_path)
    again = Tokenizer.from_folder(tmp_path)
    assert again.vocab_size == grown.vocab_size
    assert again.special == grown.special
    assert again.control_tokens == grown.control_tokens
    for text in [*SENTENCES, "a [CAT=CULTURE] b"]:
        assert again.encode(text, "b").ids.tolist() == grown.encode(text, "b").ids.tolist()
    assert again.files() == {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    assert Tokenizer.from_files(again.files()).files() == again.files()


def test_vocab_txt_is_written_for_wordpiece(tokenizers, files, tmp_path: Path) -> None:
    tokenizers["uncased"].save(tmp_path)
    assert (tmp_path / "vocab.txt").read_bytes() == files["uncased"]["vocab.txt"]
    assert not [p for p in tmp_path.iterdir() if p.name.startswith(".")]


def test_a_batch_equals_one_by_one(tokenizer: Tokenizer) -> None:
    setting = Truncation(max_length=9)
    pairs = SENTENCES[::-1]
    batch = tokenizer.encode_batch(SENTENCES, pairs, truncation=setting)
    for one, text, pair in zip(batch, SENTENCES, pairs, strict=True):
        single = tokenizer.encode(text, pair, truncation=setting)
        for name in ("ids", "words", "offsets", "segments", "fields"):
            assert getattr(one, name).tolist() == getattr(single, name).tolist()
        assert one.cut == single.cut


def test_fast_ids_are_those_of_encode(tokenizer: Tokenizer) -> None:
    for longest in (2, 3, 7, 512):
        arrays, cuts = tokenizer.fast_ids(SENTENCES, longest)
        for text, ids, cut in zip(SENTENCES, arrays, cuts, strict=True):
            encoding = tokenizer.encode(text, truncation=Truncation(max_length=longest))
            assert ids.tolist() == encoding.ids.tolist()
            assert ids.dtype == np.int32
            assert cut == encoding.total_cut
    assert tokenizer.fast_ids([], 8) == ([], [])
    if tokenizer.special_count:
        with pytest.raises(TextError, match="special tokens"):
            tokenizer.fast_ids(["a"], 1)


def test_several_fields_are_separated_like_a_pair(tokenizers) -> None:
    encoding = tokenizers["uncased"].encode_fields(["he", "likes", "the cat"])
    assert encoding.tokens == ["[CLS]", "he", "[SEP]", "likes", "[SEP]", "the", "cat", "[SEP]"]
    assert encoding.segments.tolist() == [0, 0, 0, 1, 1, 1, 1, 1]
    assert encoding.fields.tolist() == [-1, 0, -1, 1, -1, 2, 2, -1]


def test_decoding_gives_the_words_back(tokenizers) -> None:
    bert = tokenizers["uncased"]
    assert bert.decode(bert.encode("He likes playing").ids) == "he likes playing"
    assert bert.decode(bert.encode("he").ids, skip_special=False) == "[CLS] he [SEP]"
    assert (
        tokenizers["roberta"].decode(tokenizers["roberta"].encode("Ünï cödé 世").ids)
        == "Ünï cödé 世"
    )
    with pytest.raises(TextError, match="not in this vocabulary"):
        bert.decode([10**6])


def test_stored_truncation_and_padding_are_ignored(tokenizers, tmp_path: Path) -> None:
    tokenizers["uncased"].save(tmp_path)
    state = json.loads((tmp_path / "tokenizer.json").read_text())
    state["truncation"] = {
        "direction": "Right",
        "max_length": 4,
        "strategy": "LongestFirst",
        "stride": 0,
    }
    state["padding"] = {
        "strategy": {"Fixed": 16},
        "direction": "Right",
        "pad_to_multiple_of": None,
        "pad_id": 0,
        "pad_type_id": 0,
        "pad_token": "[PAD]",
    }
    (tmp_path / "tokenizer.json").write_text(json.dumps(state))
    assert len(Tokenizer.from_folder(tmp_path).encode("he likes the cat on a mat")) == 9


def test_what_is_not_text_is_refused_by_number(tokenizers) -> None:
    with pytest.raises(TextError, match="text 1 is of type int"):
        tokenizers["uncased"].encode_batch(["a", 3])
    with pytest.raises(TextError, match="sequence"):
        tokenizers["uncased"].encode_batch("a text")
    with pytest.raises(TextError, match="2 texts and 1 pairs"):
        tokenizers["uncased"].encode_batch(["a", "b"], ["c"])


def test_the_longest_input_comes_from_the_settings_file() -> None:
    assert Tokenizer.from_files(bert_files()).model_max_length is None
    for value, known in ((512, 512), (1e30, None), (int(1e30), None), ("x", None)):
        made = Tokenizer.from_files(bert_files(config={"model_max_length": value}))
        assert made.model_max_length == known


def test_albert_offsets_count_characters_that_vanish_at_the_start(tokenizers) -> None:
    text = "\x1f\x1f\ufeffhe likes"
    encoding = tokenizers["albert"].encode(text)
    plain = tokenizers["albert"].encode("he likes")
    assert encoding.ids.tolist() == plain.ids.tolist()
    assert (encoding.offsets[1:-1] - plain.offsets[1:-1] == 3).all()
