"""Every stored tensor finds its place, whatever its age; every other one is named."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from folder_models import WORDS, same_weights, tiny_model, tiny_tokenizer
from fresh_python import run_fresh
from safetensors.torch import load_file, save_file
from torch import Tensor

from bertsmith.errors import ConfigError, FolderError, TensorMismatchError, UnsafeFileError
from bertsmith.folders.read import load_model, load_tokenizer, read_folder
from bertsmith.folders.write import save_model
from bertsmith.models.config.labels import Labels
from bertsmith.models.variant import Head
from bertsmith.models.variants import VARIANTS

pytestmark = pytest.mark.usefixtures("edited_folders")

State = dict[str, Tensor]


def folder_with(
    path: Path, change: Callable[[State], State], heads: tuple[str, ...] = (), **spec: object
) -> Path:
    """A folder of a tiny BERT whose stored tensors went through `change`."""
    save_model(tiny_model("bert", heads, **spec), tiny_tokenizer(), path)
    save_file(change(load_file(path / "model.safetensors")), path / "model.safetensors")
    return path


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("head", [False, True])
def test_what_was_saved_is_what_is_loaded(variant: str, head: bool, tmp_path: Path) -> None:
    vocabulary = ("masked_lm", "language_model")
    heads = tuple(kind for kind in vocabulary if head and kind in VARIANTS[variant].heads)
    assert len(heads) == head
    model = tiny_model(variant, heads)
    save_model(model, tiny_tokenizer(), tmp_path / "m")
    loaded = load_model(tmp_path / "m")
    assert loaded.model.spec == model.spec
    assert loaded.model.variant.name == variant
    assert tuple(loaded.model.heads) == heads
    assert same_weights(loaded.model, model)
    assert not loaded.model.training
    assert loaded.unknown_keys == ()
    assert loaded.tokenizer.encode("a 字").ids.tolist() == [2, 5, 18, 3]


@pytest.mark.parametrize(
    "heads",
    [
        ("masked_lm", "next_sentence"),
        (Head(kind="sequence", outputs=5),),
        (Head(kind="token", outputs=3),),
        ("span",),
        ("masked_lm", Head(kind="sequence", outputs=4)),
    ],
)
def test_all_heads_of_a_folder_come_back(heads: tuple[str | Head, ...], tmp_path: Path) -> None:
    model = tiny_model("bert", heads)
    outputs = max((h.outputs for h in heads if isinstance(h, Head)), default=0)
    labels = Labels(names=tuple(f"l{number}" for number in range(outputs)))
    save_model(model, tiny_tokenizer(), tmp_path / "m", labels=labels)
    loaded = load_model(tmp_path / "m")
    assert same_weights(loaded.model, model)
    assert loaded.folder.reading.labels == labels


@pytest.mark.parametrize("sharing", ["attention", "feed_forward", "all"])
def test_a_spec_no_published_config_can_say_comes_back(sharing: str, tmp_path: Path) -> None:
    model = tiny_model("bert", sharing=sharing)
    save_model(model, tiny_tokenizer(), tmp_path / "m")
    loaded = load_model(tmp_path / "m").model
    assert loaded.spec == model.spec
    assert same_weights(loaded, model)
    blocks = loaded.encoder.blocks
    assert (blocks[0].attention is blocks[1].attention) == (sharing != "feed_forward")


def _gamma_beta(state: State) -> State:
    def old(name: str) -> str:
        if "LayerNorm" not in name:
            return name
        return name.replace(".weight", ".gamma").replace(".bias", ".beta")

    return {old(name): tensor for name, tensor in state.items()}


OLD_SPELLINGS: dict[str, Callable[[State], State]] = {
    "gamma and beta": _gamma_beta,
    "prefix bert.": lambda state: {f"bert.{name}": t for name, t in state.items()},
    "prefix module.": lambda state: {f"module.{name}": t for name, t in state.items()},
    "prefix module.bert.": lambda state: {f"module.bert.{name}": t for name, t in state.items()},
    "gamma, beta, module.bert.": lambda state: {
        f"module.bert.{name}": t for name, t in _gamma_beta(state).items()
    },
    "position_ids": lambda state: {
        **state,
        "embeddings.position_ids": torch.arange(24)[None],
        "embeddings.token_type_ids": torch.zeros(1, 24, dtype=torch.long),
    },
    "half": lambda state: {n: t.half() for n, t in state.items()},
    "bfloat16": lambda state: {n: t.bfloat16() for n, t in state.items()},
    "float64": lambda state: {n: t.double() for n, t in state.items()},
}


@pytest.mark.parametrize("name", OLD_SPELLINGS)
def test_old_spellings_and_types_are_understood(name: str, tmp_path: Path) -> None:
    loaded = load_model(folder_with(tmp_path / "m", OLD_SPELLINGS[name])).model
    rounded = 4e-3 if name in ("half", "bfloat16") else 0.0
    expected = tiny_model().state_dict()
    assert {tensor.dtype for tensor in loaded.state_dict().values()} == {torch.float32}
    for weight, tensor in loaded.state_dict().items():
        torch.testing.assert_close(tensor, expected[weight], rtol=0, atol=rounded)


def test_a_decoder_stored_as_a_copy_is_read_once(tmp_path: Path) -> None:
    def copied(state: State) -> State:
        decoder = state["bert.embeddings.word_embeddings.weight"].clone()
        bias = state["cls.predictions.bias"].clone()
        return {
            **state,
            "cls.predictions.decoder.weight": decoder,
            "cls.predictions.decoder.bias": bias,
        }

    loaded = load_model(folder_with(tmp_path / "m", copied, ("masked_lm",)))
    assert same_weights(loaded.model, tiny_model("bert", ("masked_lm",)))


def test_a_decoder_that_differs_is_refused_by_name(tmp_path: Path) -> None:
    def untied(state: State) -> State:
        decoder = state["bert.embeddings.word_embeddings.weight"] + 1
        return {**state, "cls.predictions.decoder.weight": decoder}

    with pytest.raises(TensorMismatchError, match=r"decoder\.weight should repeat"):
        load_model(folder_with(tmp_path / "m", untied, ("masked_lm",)))


def test_a_pooler_is_never_invented(tmp_path: Path) -> None:
    def without(state: State) -> State:
        return {name: tensor for name, tensor in state.items() if "pooler" not in name}

    loaded = load_model(folder_with(tmp_path / "m", without))
    assert loaded.model.spec.pooler is False
    assert loaded.model.encoder.pooler is None


def test_a_head_the_config_names_but_nobody_stored_is_never_invented(tmp_path: Path) -> None:
    def encoder_only(state: State) -> State:
        return {name: tensor for name, tensor in state.items() if "cls." not in name}

    loaded = load_model(folder_with(tmp_path / "m", encoder_only, ("masked_lm",)))
    assert len(loaded.model.heads) == 0


def test_a_head_the_config_does_not_name_is_found(tmp_path: Path) -> None:
    path = folder_with(tmp_path / "m", dict, ("masked_lm", "next_sentence"))
    config = json.loads((path / "config.json").read_text())
    (path / "config.json").write_text(json.dumps({**config, "architectures": ["BertModel"]}))
    assert set(load_model(path).model.heads) == {"masked_lm", "next_sentence"}


FAULTS: dict[str, tuple[Callable[[State], State], str]] = {
    "missing": (
        lambda s: {n: t for n, t in s.items() if n != "encoder.layer.1.output.dense.weight"},
        r"1 missing: encoder\.layer\.1\.output\.dense\.weight",
    ),
    "extra": (lambda s: {**s, "strange.weight": torch.ones(2)}, r"1 left over: strange\.weight"),
    "misshapen": (
        lambda s: {**s, "pooler.dense.weight": torch.ones(16, 8)},
        r"1 misshapen: pooler\.dense\.weight is \(16, 8\) and should be \(16, 16\)",
    ),
    "half a head": (
        lambda s: {**s, "cls.predictions.transform.dense.weight": torch.ones(16, 16)},
        r"left over: cls\.predictions\.transform\.dense\.weight",
    ),
    "a third layer": (
        lambda s: {**s, "encoder.layer.2.output.dense.bias": torch.ones(16)},
        r"left over: encoder\.layer\.2\.output\.dense\.bias",
    ),
    "a classifier of nobody": (
        lambda s: {**s, "classifier.weight": torch.ones(2, 16), "classifier.bias": torch.ones(2)},
        r"left over: classifier\.bias, classifier\.weight",
    ),
    "twice": (
        lambda s: {**s, "bert.pooler.dense.bias": s["pooler.dense.bias"].clone()},
        r"left over: .*pooler\.dense\.bias",
    ),
    "not finite": (
        lambda s: {**s, "pooler.dense.bias": torch.full((16,), float("nan"))},
        r"pooler\.dense\.bias holds values that are not finite",
    ),
    "integers": (
        lambda s: {**s, "pooler.dense.bias": torch.ones(16, dtype=torch.int32)},
        r"pooler\.dense\.bias is stored as I32",
    ),
}


@pytest.mark.parametrize(("change", "said"), FAULTS.values(), ids=FAULTS.keys())
def test_tensors_that_do_not_fit_are_named(
    change: Callable[[State], State], said: str, tmp_path: Path
) -> None:
    with pytest.raises(TensorMismatchError, match=said):
        load_model(folder_with(tmp_path / "m", change))


def test_many_faults_are_listed_up_to_twenty_with_their_number(tmp_path: Path) -> None:
    missing: list[str] = []

    def change(state: State) -> State:
        missing.extend(name for name in state if "pooler" not in name)  # no model must have one
        return {f"odd.{number:03d}": torch.ones(1) for number in range(50)}

    with pytest.raises(TensorMismatchError) as caught:
        load_model(folder_with(tmp_path / "m", change))
    message = str(caught.value)
    assert "50 left over: odd.000, " in message
    assert "odd.019 and 30 more" in message
    assert "odd.020" not in message
    assert len(missing) > 20
    assert f"{len(missing)} missing: " in message
    assert f" and {len(missing) - 20} more" in message


@pytest.mark.parametrize("name", ["pytorch_model.bin", "model.pt", "model.ckpt"])
def test_a_folder_with_only_a_pickle_names_it_and_the_command(name: str, tmp_path: Path) -> None:
    path = folder_with(tmp_path / "m", dict)
    (path / "model.safetensors").unlink()
    (path / name).write_bytes(b"\x80\x02.")
    with pytest.raises(UnsafeFileError) as caught:
        load_model(path)
    assert name in str(caught.value)
    assert f"bertsmith convert {path} DST --from-pickle" in str(caught.value)


@pytest.mark.parametrize("name", ["tf_model.h5", "flax_model.msgpack"])
def test_a_folder_in_a_foreign_format_is_named(name: str, tmp_path: Path) -> None:
    path = folder_with(tmp_path / "m", dict)
    (path / "model.safetensors").unlink()
    (path / name).write_bytes(b"x")
    with pytest.raises(FolderError, match=name):
        load_model(path)


def test_an_unknown_model_type_names_the_file_and_what_is_known(tmp_path: Path) -> None:
    path = folder_with(tmp_path / "m", dict)
    (path / "config.json").write_text('{"model_type": "bret"}')
    with pytest.raises(ConfigError, match=r"config\.json: .*'bret'; did you mean 'bert'"):
        load_model(path)


def test_a_folder_without_config_says_what_it_holds(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("x")
    with pytest.raises(FolderError, match=r"no config\.json.*notes\.txt"):
        load_model(tmp_path)


def test_a_tokenizer_larger_than_the_embedding_is_refused(tmp_path: Path) -> None:
    path = folder_with(tmp_path / "m", dict)
    for name in ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"):
        (path / name).unlink()
    (path / "vocab.txt").write_text("\n".join([*WORDS, "more"]))
    with pytest.raises(FolderError, match="ids up to 20, the embedding only 20 rows"):
        load_model(path)


def test_a_folder_without_tokenizer_loads_until_the_tokenizer_is_asked_for(tmp_path: Path) -> None:
    save_model(tiny_model(), None, tmp_path / "m")
    loaded = load_model(tmp_path / "m")
    with pytest.raises(FolderError, match="has no tokenizer"):
        _ = loaded.tokenizer


def test_a_vocabulary_without_a_model_gives_a_tokenizer(tmp_path: Path) -> None:
    (tmp_path / "vocab.txt").write_text("\n".join(WORDS))
    assert load_tokenizer(tmp_path).vocab_size == len(WORDS)


def test_unknown_harmless_keys_are_listed(tmp_path: Path) -> None:
    path = folder_with(tmp_path / "m", dict)
    config = json.loads((path / "config.json").read_text())
    (path / "config.json").write_text(json.dumps({**config, "color": "blue"}))
    assert load_model(path).unknown_keys == ("color",)


def test_weights_do_not_change_when_the_file_does(tmp_path: Path) -> None:
    path = folder_with(tmp_path / "m", dict)
    loaded = load_model(path).model
    before = {name: tensor.clone() for name, tensor in loaded.state_dict().items()}
    (path / "model.safetensors").write_bytes(b"\0" * (path / "model.safetensors").stat().st_size)
    assert all(torch.equal(before[name], t) for name, t in loaded.state_dict().items())


def test_settings_are_read_without_torch_and_weights_without_the_compiler(tmp_path: Path) -> None:
    path = folder_with(tmp_path / "m", dict)
    (path / "hashes.json").unlink()  # another process reads the edited folder
    code = (
        "import sys\n"
        "from bertsmith.folders.read import read_folder, load_model\n"
        f"folder = read_folder({str(path)!r}); folder.tokenizer\n"
        "assert 'torch' not in sys.modules\n"
        f"load_model({str(path)!r})\n"
        "heavy = {'torch._dynamo', 'sympy', 'transformers', 'safetensors'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    run_fresh(code)


def test_read_folder_tells_variant_spec_and_settings(tmp_path: Path) -> None:
    path = folder_with(tmp_path / "m", dict)
    folder = read_folder(path)
    assert (folder.variant, folder.spec.hidden, folder.sentence) == ("bert", 16, None)
    assert folder.longest() == 24
