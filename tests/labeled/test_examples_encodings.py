"""Encodings: read right when declared or marked, refused with place and remedy when not."""

from __future__ import annotations

import codecs
import json
import re

import pytest

from bertsmith.errors import InputFileError, RowsError
from bertsmith.labeled import DataSpec, Label, read_examples

pytestmark = pytest.mark.reliability

CHINESE = "今天的天气很好我们去公园散步中国的首都是北京那里有很多历史悠久的建筑"
TRADITIONAL = "今天的天氣很好我們去公園散步臺灣的首都是臺北那裡有很多歷史悠久的建築"
FRENCH = "Ça va très bien, merci; à bientôt à la maison où l'été dure"
# name: codec, mark, text, read without being declared
ENCODINGS = {
    "utf-8": ("utf-8", b"", CHINESE, True),
    "utf-8-marked": ("utf-8", codecs.BOM_UTF8, CHINESE, True),
    "utf-16-le-marked": ("utf-16-le", codecs.BOM_UTF16_LE, CHINESE, True),
    "utf-16-be-marked": ("utf-16-be", codecs.BOM_UTF16_BE, CHINESE, True),
    "utf-32-marked": ("utf-32-le", codecs.BOM_UTF32_LE, CHINESE, True),
    "utf-16-le": ("utf-16-le", b"", "plain words", False),
    "utf-16-be": ("utf-16-be", b"", "plain words", False),
    "gb18030": ("gb18030", b"", CHINESE, False),
    "gbk": ("gbk", b"", CHINESE, False),
    "big5": ("big5", b"", TRADITIONAL, False),
    "latin-1": ("latin-1", b"", FRENCH, False),
}


def tsv(text: str) -> str:
    return "text\tlabel\n" + "".join(f"{text}{n}\t{text[:2]}{n % 2}\n" for n in range(4))


def csv(text: str) -> str:
    return "text,label\r\n" + "".join(f'"{text}{n}",{text[:2]}{n % 2}\r\n' for n in range(4))


def jsonl(text: str) -> str:
    rows = [{"text": f"{text}{n}", "label": f"{text[:2]}{n % 2}"} for n in range(4)]
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def semicolons(text: str) -> str:
    return "".join(f'{text[:2]}{n % 2};"{text}{n}"\n' for n in range(4))


FORMATS = {"tsv": tsv, "csv": csv, "jsonl": jsonl, "semicolons": semicolons}


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("name", ENCODINGS)
def test_no_file_is_read_as_something_else(name, form, tmp_path) -> None:
    codec, mark, text, plain = ENCODINGS[name]
    path = tmp_path / f"a.{'csv' if form == 'semicolons' else form}"
    path.write_bytes(mark + FORMATS[form](text).encode(codec))
    expected = [(f"{text}{n}", Label(f"{text[:2]}{n % 2}")) for n in range(4)]
    found = [(e.texts[0], e.target) for e in read_examples(path, DataSpec(encoding=codec))]
    assert found == expected
    if plain:
        assert [(e.texts[0], e.target) for e in read_examples(path)] == expected
        return
    with pytest.raises(InputFileError) as caught:
        list(read_examples(path))
    message = str(caught.value)
    assert re.search(rf"{re.escape(str(path))}, line \d+.*byte \d+", message), message
    suggested = re.search(r"--encoding (\S+)", message)
    assert suggested is not None
    assert path.read_bytes().decode(suggested[1]) == FORMATS[form](text)


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("wrong", ["gbk", "latin-1", "big5"])
def test_utf8_that_was_declared_as_something_else_is_refused(form, wrong, tmp_path) -> None:
    path = tmp_path / f"a.{'csv' if form == 'semicolons' else form}"
    path.write_text(FORMATS[form](CHINESE), encoding="utf-8")
    with pytest.raises(InputFileError, match=r"line \d") as caught:
        list(read_examples(path, DataSpec(encoding=wrong)))
    assert "--encoding utf-8" in str(caught.value)


@pytest.mark.parametrize("codec", ["utf-8", "gb18030", "big5"])
def test_a_row_in_another_encoding_is_rejected_with_its_byte(codec, tmp_path) -> None:
    text = TRADITIONAL if codec == "big5" else CHINESE
    good = [f"{text}{n}\tx{n}\n".encode(codec) for n in range(3)]
    bad = "été comme hiver\tx1\n".encode("latin-1")
    if codec != "utf-8":  # decodes almost anything: UTF-8 beyond doubt is found all the same
        bad = f"{CHINESE}\tx1\n".encode()
    path = tmp_path / "a.tsv"
    path.write_bytes(b"".join([good[0], bad, *good[1:]]))
    spec = DataSpec(encoding=codec, header=False)
    with pytest.raises(RowsError) as caught:
        list(read_examples(path, spec))
    says = r"byte 0x\w\w at byte \d+ is not valid|the row is valid UTF-8"
    assert re.search(rf"line 2, column \d+: ({says}).*; \S+", str(caught.value)), caught.value
    rows = read_examples(path, spec, on_error="skip")
    assert [e.texts[0] for e in rows] == [f"{text}{n}" for n in range(3)]


@pytest.mark.parametrize("codec", ["utf-8", "gb18030", "big5", "utf-16-le", "utf-16-be"])
def test_a_character_cut_off_at_the_end_is_found(codec, tmp_path) -> None:
    content = f"{TRADITIONAL}\tpos\n{TRADITIONAL}\t好".encode(codec)[:-1]
    path = tmp_path / "a.tsv"
    path.write_bytes(content)
    with pytest.raises(InputFileError, match=r"line 2.* at byte \d+ is not valid"):
        list(read_examples(path, DataSpec(encoding=codec)))


def test_an_encoding_nobody_knows_is_named(tmp_path) -> None:
    path = tmp_path / "a.tsv"
    path.write_text("a\tb\n")
    with pytest.raises(InputFileError, match="no encoding is called 'utf8x'"):
        list(read_examples(path, DataSpec(encoding="utf8x")))
