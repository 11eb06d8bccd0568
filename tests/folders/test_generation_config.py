"""generation_config.json: read strictly, hostile ones refused by name, written back as it was."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from folder_models import tiny_model, tiny_tokenizer
from transformers import GenerationConfig

from bertsmith.errors import BertsmithError, FolderError
from bertsmith.folders.convert import convert
from bertsmith.folders.generation import (
    GENERATION_CONFIG,
    GenerationDefaults,
    Writes,
    fresh_defaults,
    generation_extras,
    read_generation,
    read_writes,
)
from bertsmith.folders.read import read_folder
from bertsmith.folders.write import save_model

pytestmark = pytest.mark.usefixtures("edited_folders")

WHOLE = {
    "decoder_start_token_id": 2,
    "eos_token_id": [3, 4],
    "bos_token_id": 2,
    "pad_token_id": 0,
    "forced_bos_token_id": 5,
    "forced_eos_token_id": 3,
    "suppress_tokens": [6],
    "begin_suppress_tokens": [7, 8],
    "bad_words_ids": [[9], [10, 11]],
    "max_length": 20,
    "max_new_tokens": 18,
    "min_length": 3,
    "min_new_tokens": 2,
    "num_beams": 4,
    "length_penalty": 2.0,
    "early_stopping": "never",
    "do_sample": False,
    "temperature": 0.5,
    "top_k": 10,
    "top_p": 0.9,
    "no_repeat_ngram_size": 3,
    "repetition_penalty": 1.2,
    "num_return_sequences": 2,
}


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("folders") / "model"
    save_model(tiny_model("bert", heads=["masked_lm"]), tiny_tokenizer(), folder)
    return folder


def written(saved: Path, tmp_path: Path, content: object, name: str = GENERATION_CONFIG) -> Path:
    folder = tmp_path / "model"
    folder.mkdir()
    for file in saved.iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    text = content if isinstance(content, str) else json.dumps(content)
    (folder / name).write_text(text)
    return folder


def test_every_key_there_and_back(saved: Path, tmp_path: Path) -> None:
    defaults = read_generation(read_folder(written(saved, tmp_path, WHOLE)))
    assert defaults.to_json() == WHOLE
    assert (defaults.ends, defaults.stop, defaults.forbidden) == ((3, 4), "never", ((9,), (10, 11)))


def test_what_transformers_writes_is_read(saved: Path, tmp_path: Path) -> None:
    theirs = GenerationConfig(
        eos_token_id=3, num_beams=3, early_stopping=True, max_new_tokens=30, no_repeat_ngram_size=2
    )
    folder = written(saved, tmp_path, theirs.to_json_string())
    defaults = read_generation(read_folder(folder))
    assert (defaults.ends, defaults.beams, defaults.stop) == ((3,), 3, "early")
    assert (defaults.max_new, defaults.no_repeat) == (30, 2)
    (folder / GENERATION_CONFIG).write_text(json.dumps(defaults.to_json()))
    back = GenerationConfig.from_pretrained(folder)
    assert (back.num_beams, back.eos_token_id, back.early_stopping) == (3, 3, True)


def test_old_keys_of_config_json_are_read_where_there_is_no_other_file(
    saved: Path, tmp_path: Path
) -> None:
    config = json.loads((saved / "config.json").read_text())
    old = {"eos_token_id": 3, "num_beams": 4, "max_length": 30, "early_stopping": True}
    folder = written(saved, tmp_path, config | old, "config.json")
    defaults = read_generation(read_folder(folder))
    assert (defaults.ends, defaults.beams, defaults.max_length) == ((3,), 4, 30)
    (folder / GENERATION_CONFIG).write_text('{"num_beams": 2}')
    newer = read_generation(read_folder(folder))
    assert (newer.ends, newer.beams, newer.max_length) == ((3,), 2, None)


HOSTILE: dict[str, tuple[Any, str]] = {
    "no JSON": ("{", "generation_config.json"),
    "a list": ("[]", "generation_config.json"),
    "twice": ('{"num_beams": 1, "num_beams": 2}', "num_beams"),
    "a float of ids": ({"eos_token_id": 3.5}, "eos_token_id"),
    "an id outside": ({"eos_token_id": 3_000}, "eos_token_id"),
    "a negative id": ({"eos_token_id": -1}, "eos_token_id"),
    "ids as text": ({"bad_words_ids": "x"}, "bad_words_ids"),
    "an id outside in a word": ({"bad_words_ids": [[1, 9_999]]}, "bad_words_ids"),
    "too many beams": ({"num_beams": 10**9}, "num_beams"),
    "no beams": ({"num_beams": 0}, "num_beams"),
    "beams as text": ({"num_beams": "4"}, "num_beams"),
    "a bool as a number": ({"num_beams": True}, "num_beams"),
    "another stop rule": ({"early_stopping": "soon"}, "early_stopping"),
    "a list as a stop rule": ({"early_stopping": [1]}, "early_stopping"),
    "temperature 0": ({"temperature": 0.0}, "temperature"),
    "top-p of 2": ({"top_p": 2.0}, "top_p"),
    "a huge penalty": ({"length_penalty": 1e300}, "length_penalty"),
    "a huge whole number": ({"length_penalty": 10**40}, "length_penalty"),
    "diverse beams": ({"num_beam_groups": 2}, "num_beam_groups"),
    "contrastive search": ({"penalty_alpha": 0.6}, "penalty_alpha"),
    "a watermark": ({"watermarking_config": {}}, "watermarking_config"),
    "deep": ('{"a": ' + "[" * 10_000 + "]" * 10_000 + "}", "generation_config.json"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_is_refused_by_name(name: str, saved: Path, tmp_path: Path) -> None:
    content, says = HOSTILE[name]
    path = written(saved, tmp_path, content)
    with pytest.raises(BertsmithError, match=r"generation_config\.json") as fault:
        read_generation(read_folder(path))
    assert says in str(fault.value)


def test_how_a_model_writes_is_saved_read_and_converted(tmp_path: Path) -> None:
    model, tokenizer = tiny_model("bert", heads=["masked_lm"]), tiny_tokenizer()
    writes = Writes(by="shift", target_segment=1)
    defaults = fresh_defaults(tokenizer, decoder=False)
    assert defaults.ends == (tokenizer.special.sep,)
    save_model(model, tokenizer, tmp_path / "a", extras=generation_extras(defaults, writes))
    convert(tmp_path / "a", tmp_path / "b")
    for name in ("a", "b"):
        folder = read_folder(tmp_path / name)
        assert read_writes(folder.parts.transformer) == writes
        assert read_generation(folder) == defaults
    own = json.loads((tmp_path / "b" / "bertsmith.json").read_text())
    for bad in ({"by": "guess"}, {"by": "mask", "source_segment": -1}, {"by": "mask", "x": 1}, 3):
        (tmp_path / "b" / "bertsmith.json").write_text(json.dumps(own | {"writes": bad}))
        with pytest.raises(FolderError, match=r"bertsmith.json: writes"):
            read_writes(read_folder(tmp_path / "b").parts.transformer)


def test_a_model_that_does_not_write_gets_no_file(saved: Path, tmp_path: Path) -> None:
    convert(saved, tmp_path / "b")
    assert not (tmp_path / "b" / GENERATION_CONFIG).exists()
    assert GenerationDefaults().to_json() == {}
