"""B4, B6: any bytes and any config in a folder give a model or a declared error, in bounded memory.

`BERTSMITH_LONG=1` runs the long form.
"""

from __future__ import annotations

import json
import os
import random
import resource
import shutil
import time
from collections import Counter
from pathlib import Path

import pytest
from folder_making import tiny_config, tiny_folder, tiny_shapes, tiny_weights
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bertsmith.errors import BertsmithError, ConfigError, FolderError
from bertsmith.folders.describe import describe
from bertsmith.folders.read import load_model, read_folder

pytestmark = pytest.mark.reliability

LONG = os.environ.get("BERTSMITH_LONG") == "1"
CONFIGS = 10_000 if LONG else 300
MUTATIONS = 200_000 if LONG else 1_500

STRANGE = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.sampled_from([0, -1, 1, 10**12, 2**31, 2**63, 3, 16, 1e-12, 1e12, -0.0, 0.5]),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=12),
    st.sampled_from(["gelu", "relu", "bert", "roberta", "relative_key", "absolute", "os.system"]),
    st.lists(st.integers(-3, 3), max_size=3),
    st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
)
KEYS = st.one_of(
    st.sampled_from(
        [
            *tiny_config(),
            "auto_map",
            "trust_remote_code",
            "_attn_implementation_internal",
            "attn_implementation",
            "position_embedding_type",
            "is_decoder",
            "num_hidden_groups",
            "embedding_size",
            "id2label",
            "num_labels",
            "pruned_heads",
            "quantization_config",
            "bertsmith",
            "use_relative_position",
            "tie_word_embeddings",
        ]
    ),
    st.text(max_size=8),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tiny_folder(tmp_path_factory.mktemp("fuzz") / "m")
    load_model(path)  # what is imported once is not measured
    return path


@settings(
    max_examples=CONFIGS,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    changes=st.dictionaries(KEYS, STRANGE, min_size=1, max_size=4), drop=st.sets(KEYS, max_size=2)
)
def test_any_config_gives_a_valid_model_or_a_declared_error(
    folder: Path, changes: dict[str, object], drop: set[str]
) -> None:
    config = {key: value for key, value in tiny_config(**changes).items() if key not in drop}
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    start = time.thread_time()  # of work: a busy machine only makes it wait
    try:
        loaded = load_model(folder)
    except (ConfigError, FolderError):
        loaded = None
    assert loaded is None or sum(p.numel() for p in loaded.model.parameters()) < 10_000
    assert time.thread_time() - start < 1.0  # 0.1 s on a quiet machine


HUGE = [
    {"vocab_size": 10**12},
    {"hidden_size": 10**9, "num_attention_heads": 1},
    {"num_hidden_layers": 10**9},
    {"num_hidden_layers": 1024, "hidden_size": 65536, "num_attention_heads": 1},
    {"max_position_embeddings": 10**15},
    {"intermediate_size": 2**62},
    {"type_vocab_size": 10**10},
    {"num_hidden_layers": 1000},
    {"vocab_size": 19_999_999},
]


@pytest.mark.parametrize("changes", HUGE, ids=str)
def test_a_config_of_a_giant_allocates_nothing(folder: Path, changes: dict[str, object]) -> None:
    (folder / "config.json").write_text(json.dumps(tiny_config()))
    load_model(folder)  # imports and caches are there
    (folder / "config.json").write_text(json.dumps(tiny_config(**changes)))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(BertsmithError):
        load_model(folder)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 50 * 1024  # kilobytes


def mutate(data: bytes, rng: random.Random) -> bytes:
    """One of the ways a file is damaged: flips, cuts, repeats, insertions, numbers changed."""
    copy = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 5))):
        place = rng.randrange(len(copy) + 1)
        kind = rng.randrange(7)
        if kind == 0 and place < len(copy):
            copy[place] ^= 1 << rng.randrange(8)
        elif kind == 1 and place < len(copy):
            copy[place] = rng.randrange(256)
        elif kind == 2:
            del copy[place:]
        elif kind == 3:
            del copy[place : place + rng.randrange(1, 20)]
        elif kind == 4:
            copy[place:place] = rng.randbytes(rng.randrange(1, 20))
        elif kind == 5:
            copy[place:place] = copy[place : place + rng.randrange(1, 200)]
        else:
            copy[place : place + 1] = rng.choice(
                (b"9", b"-", b"[", b"{", b'"', b"\0", b"1e9", b",")
            )
    return bytes(copy)


def fuzzed_files(path: Path) -> dict[str, bytes]:
    """A sentence folder in shards, so that every kind of file is there."""
    tiny_folder(path)
    shapes = tiny_shapes()
    names = list(shapes)
    shards = {"model-1.safetensors": names[:10], "model-2.safetensors": names[10:]}
    for file, part in shards.items():
        (path / file).write_bytes(tiny_weights({name: shapes[name] for name in part}))
    places = {name: file for file, part in shards.items() for name in part}
    index = json.dumps({"metadata": {"total_size": 1}, "weight_map": places})
    (path / "model.safetensors.index.json").write_text(index)
    (path / "model.safetensors").unlink()
    kinds = (("Transformer", ""), ("Pooling", "1_Pooling"), ("Normalize", "2_Normalize"))
    modules = [{"type": f"sentence_transformers.models.{kind}", "path": at} for kind, at in kinds]
    (path / "modules.json").write_text(json.dumps(modules))
    (path / "1_Pooling").mkdir()
    (path / "1_Pooling" / "config.json").write_text('{"pooling_mode_mean_tokens": true}')
    (path / "sentence_bert_config.json").write_text('{"max_seq_length": 20}')
    (path / "config_sentence_transformers.json").write_text('{"prompts": {"a": "b"}}')
    load_model(path)
    return {
        str(file.relative_to(path)): file.read_bytes() for file in path.rglob("*") if file.is_file()
    }


def test_damaged_bytes_give_a_model_or_a_declared_error(tmp_path: Path) -> None:
    whole = fuzzed_files(tmp_path / "m")
    rng = random.Random(20)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    outcomes: Counter[str] = Counter()
    for number in range(MUTATIONS):
        name = sorted(whole)[number % len(whole)]
        file = tmp_path / "m" / name
        file.write_bytes(mutate(whole[name], rng))
        said = str(tmp_path / "m")
        kind = "fine"
        try:
            load_model(tmp_path / "m") if number % 3 else read_folder(tmp_path / "m")
            if number % 50 == 0:
                describe(tmp_path / "m")
        except BertsmithError as fault:
            kind, said = type(fault).__name__, str(fault)
        outcomes[kind] += 1
        assert str(tmp_path / "m") in said, (name, said)
        file.write_bytes(whole[name])
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100 * 1024
    assert outcomes["fine"] > MUTATIONS // 100
    assert outcomes["FolderError"] > MUTATIONS // 10


def test_a_changed_tensor_is_the_only_thing_a_bit_flip_can_do_in_the_data(tmp_path: Path) -> None:
    """A flipped bit in the data gives another finite weight or is refused; nothing else."""
    path = tiny_folder(tmp_path / "m")
    data = (path / "model.safetensors").read_bytes()
    start = 8 + int.from_bytes(data[:8], "little")
    rng = random.Random(5)
    for _ in range(60):
        copy = bytearray(data)
        copy[rng.randrange(start, len(copy))] ^= 1 << rng.randrange(8)
        (path / "model.safetensors").write_bytes(copy)
        said = "not finite"
        try:
            load_model(path)
        except FolderError as fault:
            said = str(fault)
        assert "not finite" in said
    shutil.rmtree(path)
