"""Files of every kind as documents of sentences, and clear words for those that are none."""

from __future__ import annotations

import gzip
import importlib.util
import json
import re

import pytest
from corpus_making import as_sentences, bert, make, some_documents, texts_of

from bertsmith.corpus.sources import describe_sources, detect_form, find_sources
from bertsmith.errors import InputFileError, MissingExtraError
from bertsmith.labeled import DataSpec

TWO = [["the cat sat.", "the mat sat."], ["unable."]]
DECODED = [["the cat sat.", "the mat sat."], ["unable."]]


def refusal(path, out, **settings) -> str:
    with pytest.raises(InputFileError) as caught:
        make(path, out, **settings)
    assert not out.exists()
    assert [entry.name for entry in out.parent.iterdir() if entry.name.startswith(".")] == []
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("a\nb\n\nc\nd\n", "sentences"),
        ("one document\nanother\n", "documents"),
        ("one\n\ntwo\n\nthree\n", "documents"),
        ("only\n", "documents"),
        ("a\nb\n\u3000\nc\n", "sentences"),
    ],
)
def test_the_form_of_a_file_is_seen(text, form) -> None:
    assert detect_form(text) == form


def test_the_form_is_told_and_paragraphs_are_noticed(tmp_path) -> None:
    path = tmp_path / "wiki.txt"
    path.write_text("One. Two. Three. Four.\nFive. Six. Seven.\n\nEight. Nine. Ten.\n")
    told = "\n".join(describe_sources(find_sources([path])))
    assert "wiki.txt: one sentence per line" in told
    assert "--form paragraphs" in told
    corpus, _ = make(path, tmp_path / "out", form="paragraphs")
    assert [len(document) for document in texts_of(corpus)] == [7, 3]


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_one_sentence_a_line(tmp_path, ending) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(as_sentences(TWO).replace("\n", ending).encode())
    corpus, report = make(path, tmp_path / "out")
    assert texts_of(corpus) == DECODED
    assert (report.documents, report.sentences) == (2, 3)


def test_one_document_a_line(tmp_path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("The cat sat. The mat sat.\nUnable.\n")
    corpus, _ = make(path, tmp_path / "out")
    assert texts_of(corpus) == DECODED


def test_json_lines_and_tables(tmp_path) -> None:
    texts = ["The cat sat. The mat sat.", "Unable."]
    rows = tmp_path / "a.jsonl"
    rows.write_text("".join(json.dumps({"id": 1, "text": text}) + "\n" for text in texts))
    table = tmp_path / "b.csv"
    table.write_text('id,review\n1,"The cat sat.\nThe mat sat."\n2,Unable.\n')
    assert texts_of(make(rows, tmp_path / "a")[0]) == DECODED
    assert texts_of(make(table, tmp_path / "b", reading=DataSpec(text=("review",)))[0]) == DECODED
    assert "which column holds" in refusal_of_keys(tmp_path)


def refusal_of_keys(tmp_path) -> str:
    rows = tmp_path / "keys.jsonl"
    rows.write_text('{"a": "x", "b": "y"}\n')
    return refusal(rows, tmp_path / "keys")


def test_packed_files(tmp_path) -> None:
    path = tmp_path / "a.txt.gz"
    path.write_bytes(gzip.compress(as_sentences(TWO).encode()))
    assert texts_of(make(path, tmp_path / "out")[0]) == DECODED
    path.write_bytes(path.read_bytes()[:-9])
    assert "not a whole .gz file" in refusal(path, tmp_path / "cut")


def test_zstandard_files(tmp_path) -> None:
    path = tmp_path / "a.jsonl.zst"
    if importlib.util.find_spec("zstandard") is None:
        path.write_bytes(b"\x28\xb5\x2f\xfd")
        with pytest.raises(MissingExtraError, match=r"pip install 'bertsmith\[zstd\]'"):
            make(path, tmp_path / "out")
        return
    import zstandard

    rows = [json.dumps({"text": text}) + "\n" for text in ("The cat sat. The mat sat.", "Unable.")]
    data = "".join(rows).encode()
    frames = [zstandard.ZstdCompressor().compress(part) for part in (data[:25], data[25:])]
    path.write_bytes(b"".join(frames))
    corpus, _ = make(path, tmp_path / "out")
    assert texts_of(corpus) == DECODED
    path.write_bytes(b"".join(frames)[:-5])
    assert "not a whole .zst file" in refusal(path, tmp_path / "cut")
    path.write_bytes(b"not zstandard at all")
    assert "not a whole .zst file" in refusal(path, tmp_path / "odd")


def test_folders_are_read_in_the_order_of_names(tmp_path) -> None:
    place = tmp_path / "texts"
    (place / "below").mkdir(parents=True)
    (place / "b.txt").write_text("mat.\n")
    (place / "below" / "c.txt").write_text("play.\n")
    (place / "a.txt").write_text("cat.\n")
    (place / "notes.pdf").write_bytes(b"%PDF")
    corpus, report = make(place, tmp_path / "out")
    assert texts_of(corpus) == [["cat."], ["mat."], ["play."]]
    assert report.files == 3


@pytest.mark.parametrize("encoding", ["gb18030", "utf-16-le", "utf-16", "utf-8-sig", "gbk"])
def test_declared_and_marked_encodings_are_read(tmp_path, encoding) -> None:
    path = tmp_path / "a.txt"
    path.write_text("我爱北京。\n你好。\n\n世界。\n", encoding=encoding)
    declared = encoding if encoding in ("gb18030", "utf-16-le", "gbk") else "utf-8"
    corpus, _ = make(path, tmp_path / "out", reading=DataSpec(encoding=declared))
    assert texts_of(corpus) == [["我 爱 北 京 。", "你 好 。"], ["世 界 。"]]


def test_gbk_read_as_utf8_names_place_and_way_out(tmp_path) -> None:
    path = tmp_path / "a.txt"
    good = "the cat sat.\n"
    path.write_bytes(good.encode() + ("我爱北京天安门。" * 20).encode("gbk") + b"\n")
    message = refusal(path, tmp_path / "out")
    assert re.search(r"a\.txt, line 2, column 1: byte 0xce at byte 13 is not valid utf-8", message)
    assert "--encoding gb18030" in message
    assert "--on-error skip" in message


def test_faulty_lines_are_skipped_and_counted_on_request(tmp_path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"the cat.\n\xff\xfe\xfa bad\nthe mat.\n\nplay.\n")
    corpus, report = make(path, tmp_path / "out", on_error="skip")
    assert texts_of(corpus) == [["the cat.", "the mat."], ["play."]]
    assert report.skipped_lines == 1
    assert "line 2, column 1: byte 0xff at byte 9 is not valid utf-8" in report.skipped_examples[0]
    assert any("left out: 1 faulty line" in line for line in report.lines())


def test_faulty_rows_are_named_or_counted(tmp_path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "the cat."}\n{"text": \n[1]\n{"text": 3}\n\n{"text": "mat."}\n')
    assert "a.jsonl, line 2, column 10: not JSON" in refusal(path, tmp_path / "out")
    corpus, report = make(path, tmp_path / "out", on_error="skip")
    assert texts_of(corpus) == [["the cat."], ["mat."]]
    assert report.skipped_lines == 3


@pytest.mark.parametrize("content", [b"", b"\n \n\t\n", "\ufeff".encode(), b"\x00\x01\x02\n"])
def test_a_file_without_text_is_refused(tmp_path, content) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(content)
    assert re.search("empty|nothing usable", refusal(path, tmp_path / "out"))


def test_odd_names_missing_files_and_wrong_options_say_what_to_do(tmp_path) -> None:
    odd = tmp_path / "wiki_00"
    odd.write_text("the cat.\n")
    assert texts_of(make(odd, tmp_path / "out")[0]) == [["the cat."]]
    assert "no file" in refusal(tmp_path / "none.txt", tmp_path / "x")
    rows = tmp_path / "a.jsonl"
    rows.write_text('"the cat."\n')
    assert "--form" in refusal(rows, tmp_path / "x", form="sentences")
    plain = tmp_path / "plain.txt"
    plain.write_text("the cat.\n")
    body = DataSpec(text=("body",))
    assert "no column 'body'" in refusal(plain, tmp_path / "x", reading=body)
    wide = tmp_path / "wide.txt"
    wide.write_bytes("plain text of some length\n".encode("utf-16-le") * 9)
    assert "--encoding utf-16-le" in refusal(wide, tmp_path / "x")


def test_options_for_one_kind_of_file_hold_in_a_mixed_folder(tmp_path) -> None:
    place = tmp_path / "texts"
    place.mkdir()
    (place / "a.txt").write_text("cat.\nmat.\n")
    (place / "b.jsonl").write_text('{"id": 1, "body": "Play. Play."}\n')
    corpus, _ = make(place, tmp_path / "out", form="sentences", reading=DataSpec(text=("body",)))
    assert texts_of(corpus) == [["cat.", "mat."], ["play.", "play."]]


def test_lone_surrogates_are_replaced_and_counted(tmp_path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "cat \\ud800 mat."}\n')
    _, report = make(path, tmp_path / "out")
    assert report.surrogates == 1


def test_documents_without_a_token_have_no_place(tmp_path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("cat.\nmat.\n\n\x01\n\x02\n\nplay.\n\n\x01\n")
    corpus, report = make(path, tmp_path / "out", tokenizer=bert())
    assert texts_of(corpus) == [["cat.", "mat."], ["play."]]
    assert report.empty_sentences == 3
    assert (corpus.documents == [0, 2, 3]).all()


def test_many_documents_come_back_whole(tmp_path) -> None:
    documents = some_documents(200)
    path = tmp_path / "a.txt"
    path.write_text(as_sentences(documents), encoding="utf-8")
    corpus, _ = make(path, tmp_path / "out")
    tokenizer = corpus.tokenizer()
    wanted = [
        [tokenizer.decode(tokenizer.encode(sentence).ids) for sentence in document]
        for document in documents
    ]
    assert texts_of(corpus) == wanted
