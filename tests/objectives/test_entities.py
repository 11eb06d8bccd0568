"""A typed list of entities: what is read, what is refused, and where mentions are found."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from masking_cases import tokenizer

from bertsmith.corpus.rows import rows_of
from bertsmith.errors import ConfigError, InputFileError
from bertsmith.objectives.entities.alignment import given_vectors
from bertsmith.objectives.entities.entity_list import EntityList, read_entities
from bertsmith.objectives.entities.mentions import Entities
from bertsmith.objectives.entities.wklm import WklmSettings
from bertsmith.text.learn import learn_vocabulary


def listed(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def entities(*pairs: str, language: str = "english") -> Entities:
    """Entities given as "name/type"."""
    names, types = zip(*(pair.split("/") for pair in pairs), strict=True)
    return Entities(EntityList(names, types), tokenizer(language))


def test_a_list_is_read_in_order_and_an_entity_that_is_repeated_counts_once(tmp_path) -> None:
    path = listed(
        tmp_path / "e.tsv", "New  York\tcity\n\ncat\tanimal\nNew York\tcity\n 北京 \tcity\n"
    )
    found = read_entities(path)
    assert found.names == ("New York", "cat", "北京")
    assert found.types == ("city", "animal", "city")
    assert found.repeated == ("New York",)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("cat\tanimal\nmat\n", r"line 2: 1 fields in 'mat'; write two, divided by a tab"),
        ("cat\tanimal\tsmall\n", r"line 1: 3 fields"),
        ("cat\tanimal\n\tanimal\n", r"line 2: the entity is empty .* fill it in, or remove"),
        ("cat\t \n", r"line 1: the type is empty"),
        (
            "cat\ta\nmat\ta\ncat\tb\n",
            r"line 3: 'cat' is of type 'b' here and of type 'a' in line 1",
        ),
        ("\n\n", r"there is no entity in it; write `entity TAB type` lines"),
        ("", r"there is no entity in it"),
    ],
)
def test_a_bad_line_is_refused_with_its_place_and_a_way_out(tmp_path, text, message) -> None:
    with pytest.raises(InputFileError, match=message):
        read_entities(listed(tmp_path / "e.tsv", text))


def test_a_missing_file_and_a_line_that_is_not_text_are_refused(tmp_path) -> None:
    with pytest.raises(InputFileError, match="there is no such file; a list of entities is"):
        read_entities(tmp_path / "none.tsv")
    (tmp_path / "bad.tsv").write_bytes(b"cat\tanimal\n\xff\xfe\tanimal\n")
    with pytest.raises(InputFileError, match=r"bad\.tsv, line 2"):
        read_entities(tmp_path / "bad.tsv")


def test_the_program_names_the_setting_or_the_file_that_it_lacks(tmp_path) -> None:
    made = tokenizer("english")
    with pytest.raises(ConfigError, match=r"set program\.entities=FILE"):
        WklmSettings().make(made)
    lone = listed(tmp_path / "lone.tsv", "cat\tanimal\nnew york\tcity\n")
    with pytest.raises(ConfigError, match="no type has two entities of this vocabulary"):
        WklmSettings(entities=lone).make(made)
    assert WklmSettings(entities=lone, replaced=0.0, aligned=1.0).make(made).rate == 0.0
    foreign = listed(tmp_path / "foreign.tsv", "Ω\ta\nΨ\ta\n")
    with pytest.raises(ConfigError, match="no entity of the list can be written"):
        WklmSettings(entities=foreign).make(made)


def test_mentions_are_whole_words_the_longest_from_the_left() -> None:
    made = entities("new york/c", "york/c", "new york piece/d", "cats/a", "cat/a")
    encoding = tokenizer("english").encode("a new york piece cats york new yorker cat")
    found = made.find(rows_of([encoding]))
    names = [made.names[number] for number in found.entities]
    assert names == ["new york piece", "cats", "york", "cat"]
    words = [encoding.tokens[a:b] for a, b in zip(found.starts, found.stops, strict=True)]
    assert words == [["new", "york", "piece"], ["cat", "##s"], ["york"], ["cat"]]


def test_chinese_mentions_are_characters_whatever_a_segmenter_thinks() -> None:
    made = entities("北京大学/o", "上海/c", "爱北/x", language="chinese")
    encoding = tokenizer("chinese").encode("我在上海北京大学生活")
    found = made.find(rows_of([encoding]))
    assert [made.names[number] for number in found.entities] == ["上海", "北京大学"]


def test_what_cannot_be_written_or_looks_like_another_is_left_out_by_name() -> None:
    made = entities("cat/a", "Cat/a", "Ω/a", "mat/a", "[SEP]/a", "york/c")
    assert made.names == ("cat", "mat", "york")
    assert made.unwritable == ["Ω", "[SEP]"]
    assert made.alike == ["Cat"]
    assert made.lone_types == ("c",)
    assert made.replaceable.tolist() == [True, True, False]


def test_byte_pieces_write_an_entity_as_it_stands_there() -> None:
    text = "Rome is old and Paris is old and Rome is large and Paris was here"
    made = learn_vocabulary([text, f"so {text}"] * 4, kind="byte-bpe", size=320, min_count=1)
    both = Entities(EntityList(("Rome", "Paris"), ("c", "c")), made)
    assert len(both.written) == 2
    found = both.find(rows_of([made.encode("Rome and Paris")]))
    assert found.entities.tolist() == [0, 1]
    assert found.forms.tolist() == [0, 1]
    for form, name in enumerate(("Paris", " Paris")):
        written = both.written[form]
        ids = written.tokens[written.firsts[1] : written.firsts[1] + written.sizes[1]]
        assert made.decode(ids.tolist()).strip() == "Paris"
        plain = made.encode(name)
        assert ids.tolist() == plain.ids[plain.words >= 0].tolist()


def test_every_other_entity_of_the_type_that_fits_is_equally_likely() -> None:
    made = entities("cat/a", "new york/a", "mat/b", "north/a", "cats/a", "new york piece/a")
    written = made.written[0]
    draws = (np.arange(1200) + 0.5) / 1200
    for own in range(len(made.names)):
        for longest in range(1, 5):
            fitting = [
                other
                for other in range(len(made.names))
                if made.types[other] == made.types[own]
                and other != own
                and written.sizes[other] <= longest
            ]
            drawn = [written.other(own, longest, float(draw)) for draw in draws]
            if not fitting:
                assert set(drawn) == {-1}
                continue
            counts = {other: drawn.count(other) for other in set(drawn)}
            assert counts == dict.fromkeys(fitting, 1200 // len(fitting))


def test_vectors_are_found_by_name_with_underscores_for_spaces(tmp_path) -> None:
    path = listed(tmp_path / "v.txt", "3 2\nNew_York 1 2\nother 9 9\nRome 3 4\n")
    vectors, known = given_vectors(path, ("Rome", "Oslo", "New York"))
    assert vectors.tolist() == [[3, 4], [0, 0], [1, 2]]
    assert known.tolist() == [True, False, True]
    with pytest.raises(
        InputFileError, match=r"v\.txt has the vectors of 1 entities .* underscores for spaces"
    ):
        given_vectors(path, ("Oslo", "Rome"))
    bad = listed(tmp_path / "nan.txt", "2 2\nRome 1 nan\nOslo 1 2\n")
    with pytest.raises(InputFileError, match=r"nan\.txt, line 2"):
        given_vectors(bad, ("Oslo", "Rome"))
    with pytest.raises(Exception, match=r"set program\.aligned=1"):
        WklmSettings(vectors=path)
