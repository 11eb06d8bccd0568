"""The same tokens as transformers' own tokenizers, for every form a folder can have."""

import json
from pathlib import Path

import pytest
from small_tokenizers import SENTENCES, albert_files, bert_files, xlnet_files
from transformers import (
    AlbertTokenizer,
    AutoTokenizer,
    BertTokenizer,
    GPT2Tokenizer,
    OpenAIGPTTokenizer,
    RobertaTokenizer,
    XLNetTokenizer,
)

from bertsmith.text.tokenizer import Tokenizer

PLAIN = [text for text in SENTENCES if "[CLS]" not in text]
CLASSES = {
    "uncased": BertTokenizer,
    "cased": BertTokenizer,
    "roberta": RobertaTokenizer,
    "albert": AlbertTokenizer,
    "gpt2": GPT2Tokenizer,
    "gpt": OpenAIGPTTokenizer,
}


def write(files: dict[str, bytes], folder: Path) -> Path:
    for name, data in files.items():
        (folder / name).write_bytes(data)
    return folder


def assert_same(ours: Tokenizer, theirs: object, texts: list[str]) -> None:
    for pair in (None, "The cat's mat, 世界"):
        for text in texts:
            expected = theirs(
                text,
                pair,
                return_offsets_mapping=True,
                return_token_type_ids=True,
                max_length=10**6,
            )
            got = ours.encode(text, pair)
            assert got.ids.tolist() == expected["input_ids"], text
            assert got.segments.tolist() == expected["token_type_ids"], text
            assert got.offsets.tolist() == [list(span) for span in expected["offset_mapping"]], text


@pytest.mark.parametrize("kind", CLASSES)
def test_files_as_published_give_the_tokens_of_transformers(kind, files, tmp_path: Path) -> None:
    theirs = CLASSES[kind].from_pretrained(write(files[kind], tmp_path))
    assert_same(Tokenizer.from_folder(tmp_path), theirs, PLAIN)


@pytest.mark.parametrize("kind", CLASSES)
def test_a_folder_of_transformers_gives_the_same_tokens_here(kind, files, tmp_path: Path) -> None:
    theirs = CLASSES[kind].from_pretrained(write(files[kind], tmp_path))
    theirs.save_pretrained(tmp_path / "saved")
    assert_same(Tokenizer.from_folder(tmp_path / "saved"), theirs, PLAIN)


@pytest.mark.parametrize("kind", CLASSES)
def test_a_folder_of_ours_gives_the_same_tokens_in_transformers(
    kind, files, tmp_path: Path
) -> None:
    ours = Tokenizer.from_files(files[kind]).add_tokens(["[CAT=CULTURE]"])
    ours.save(tmp_path)
    theirs = AutoTokenizer.from_pretrained(tmp_path)
    assert isinstance(theirs, CLASSES[kind])
    assert len(theirs) == ours.vocab_size
    assert_same(ours, theirs, [*PLAIN, "a [CAT=CULTURE] b"])
    assert_same(Tokenizer.from_folder(tmp_path), theirs, PLAIN)


@pytest.mark.parametrize(
    "config",
    [
        {"do_lower_case": True, "strip_accents": False},
        {"do_lower_case": False, "strip_accents": True},
        {"do_lower_case": True, "tokenize_chinese_chars": False},
        {"cls_token": "[MASK]", "sep_token": "[PAD]"},
        {"additional_special_tokens": ["[ONE]", "[TWO]"]},
    ],
)
def test_settings_of_a_bert_folder_are_obeyed(config, tmp_path: Path) -> None:
    folder = write(bert_files(cased=True, config=config), tmp_path)
    theirs = BertTokenizer.from_pretrained(folder)
    assert_same(Tokenizer.from_folder(folder), theirs, [*PLAIN, "a [ONE] b[TWO]"])


@pytest.mark.parametrize("config", [{"do_lower_case": False}, {"keep_accents": True}])
def test_settings_of_an_albert_folder_are_obeyed(config, tmp_path: Path) -> None:
    files = {**albert_files(), "tokenizer_config.json": json.dumps(config).encode()}
    theirs = AlbertTokenizer.from_pretrained(write(files, tmp_path))
    assert_same(Tokenizer.from_folder(tmp_path), theirs, PLAIN)


@pytest.mark.parametrize("config", [None, {"do_lower_case": True}])  # v5 ignores keep_accents
def test_an_xlnet_folder_of_a_sentencepiece_model_is_that_of_transformers(
    config: dict | None, tmp_path: Path
) -> None:
    files = xlnet_files()
    if config is not None:
        files["tokenizer_config.json"] = json.dumps(config).encode()
    theirs = XLNetTokenizer.from_pretrained(write(files, tmp_path))
    ours = Tokenizer.from_folder(tmp_path)
    texts = [text for text in PLAIN if text.strip()]
    for pair in (None, "The cat's mat, 世界"):
        for text in texts:
            expected = theirs(text, pair, return_token_type_ids=True)
            got = ours.encode(text, pair)
            assert got.ids.tolist() == expected["input_ids"], text
            assert got.segments.tolist() == expected["token_type_ids"], text
    one, two = ours.encode("he plays"), ours.encode("he", "plays")
    assert one.ids[-2:].tolist() == [4, 3]
    assert one.segments.tolist() == [0] * (len(one) - 1) + [2]
    assert two.segments[-2:].tolist() == [1, 2]
    ours.save(tmp_path / "saved")
    again = AutoTokenizer.from_pretrained(tmp_path / "saved")
    assert again("he plays")["input_ids"] == one.ids.tolist()
    assert (
        json.loads((tmp_path / "saved" / "tokenizer_config.json").read_text())["tokenizer_class"]
        == "XLNetTokenizer"
    )


def test_an_albert_model_gives_the_pieces_of_sentencepiece() -> None:
    import sentencepiece

    # transformers 5 makes declared pieces added tokens, which part words; sentencepiece does not.
    files = albert_files(user_defined_symbols=["(", ")", '"', "-"])
    oracle = sentencepiece.SentencePieceProcessor(model_proto=files["spiece.model"])
    ours = Tokenizer.from_files(files)
    for text in ("he likes playing", "north (south) - words, pieces!", "<pad> [CLS] a", "我爱北京"):
        got = ours.encode(text)
        assert got.ids[1:-1].tolist() == oracle.encode(text.lower()), text


def test_numbers_with_a_comma_are_split_as_published_albert_does() -> None:
    from bertsmith.text.sentencepiece import ScoredPiece, SentencePieceModel, albert_state

    model = SentencePieceModel(
        (ScoredPiece("<unk>", 0.0, 2), ScoredPiece("9,", -1.0, 1)), 1, 0, b""
    )
    vocab = albert_state(model, lowercase=True, keep_accents=False)["model"]["vocab"]
    assert vocab == [["<unk>", 0.0], ["9,", -101.0]]


def test_the_settings_file_wins_over_tokenizer_json_as_in_transformers(tmp_path: Path) -> None:
    Tokenizer.from_files(bert_files(cased=True)).save(tmp_path)
    config = json.loads((tmp_path / "tokenizer_config.json").read_text())
    config["do_lower_case"] = True
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    assert_same(Tokenizer.from_folder(tmp_path), AutoTokenizer.from_pretrained(tmp_path), PLAIN)
