"""Sentence settings of every age are read; what is not understood is refused by name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from folder_models import tiny_model, tiny_tokenizer

from bertsmith.errors import BertsmithError, ConfigError, FolderError, UnsafeFileError
from bertsmith.files.safe_folder import Folder
from bertsmith.folders.read import load_model
from bertsmith.folders.sentence import read_sentence
from bertsmith.folders.sentence_files import sentence_files
from bertsmith.folders.write import save_model
from bertsmith.models.sentence_spec import DenseLayer, SentenceSettings

pytestmark = pytest.mark.usefixtures("edited_folders")

OLD, NEW = "sentence_transformers.models", "sentence_transformers.sentence_transformer.modules"
BASE = "sentence_transformers.base.modules"


def write(path: Path, files: dict[str, Any]) -> Folder:
    for name, content in files.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_text(json.dumps(content))
    return Folder.at(path)


def modules(*types: tuple[str, str]) -> list[dict[str, Any]]:
    return [
        {"idx": number, "name": str(number), "path": path, "type": kind}
        for number, (kind, path) in enumerate(types)
    ]


OLD_MODULES = modules(
    (f"{OLD}.Transformer", ""), (f"{OLD}.Pooling", "1_Pooling"), (f"{OLD}.Normalize", "2_Normalize")
)
MEAN = {"word_embedding_dimension": 16, "pooling_mode_mean_tokens": True}


def test_the_schema_of_2021_is_read(tmp_path: Path) -> None:
    folder = write(
        tmp_path,
        {
            "modules.json": OLD_MODULES,
            "1_Pooling/config.json": {
                "word_embedding_dimension": 16,
                "pooling_mode_cls_token": False,
                "pooling_mode_mean_tokens": True,
                "pooling_mode_max_tokens": False,
                "pooling_mode_mean_sqrt_len_tokens": False,
            },
            "sentence_bert_config.json": {"max_seq_length": 20, "do_lower_case": True},
        },
    )
    assert read_sentence(folder).settings == SentenceSettings(
        pooling=("mean",), normalize=True, max_length=20, lowercase=True
    )


def test_the_schema_of_release_6_is_read(tmp_path: Path) -> None:
    folder = write(
        tmp_path,
        {
            "modules.json": modules(
                (f"{BASE}.transformer.Transformer", ""),
                (f"{NEW}.pooling.Pooling", "1_Pooling"),
                (f"{BASE}.normalize.Normalize", "2_Normalize"),
            ),
            "1_Pooling/config.json": {
                "embedding_dimension": 16,
                "pooling_mode": ["max", "lasttoken"],
                "include_prompt": False,
            },
            "2_Normalize/config.json": {"module_input_name": "sentence_embedding"},
            "sentence_bert_config.json": {
                "transformer_task": "feature-extraction",
                "modality_config": {"text": {"method": "forward"}},
                "module_output_name": "token_embeddings",
            },
            "config_sentence_transformers.json": {
                "model_type": "SentenceTransformer",
                "prompts": {"query": "q: ", "document": ""},
                "default_prompt_name": "query",
                "similarity_fn_name": "manhattan",
            },
        },
    )
    assert read_sentence(folder).settings == SentenceSettings(
        pooling=("max", "last"),
        normalize=True,
        prompts={"query": "q: ", "document": ""},
        default_prompt="query",
        pools_prompt=False,
        similarity="manhattan",
    )


def test_the_transformer_of_very_old_folders_lies_in_a_folder_of_its_own(tmp_path: Path) -> None:
    save_model(tiny_model(), tiny_tokenizer(), tmp_path / "m" / "0_Transformer")
    write(
        tmp_path / "m",
        {
            "modules.json": modules(
                (f"{OLD}.Transformer", "0_Transformer"), (f"{OLD}.Pooling", "1_Pooling")
            ),
            "1_Pooling/config.json": {**MEAN, "pooling_mode_cls_token": True},
            "0_Transformer/sentence_bert_config.json": {"max_seq_length": 12},
        },
    )
    loaded = load_model(tmp_path / "m")
    assert loaded.sentence.pooling == ("first", "mean")
    assert loaded.sentence.max_length == 12
    assert loaded.tokenizer.vocab_size == 20


def test_a_config_named_after_the_model_inside_is_read(tmp_path: Path) -> None:
    folder = write(
        tmp_path,
        {
            "modules.json": OLD_MODULES,
            "1_Pooling/config.json": MEAN,
            "sentence_roberta_config.json": {"max_seq_length": 9},
        },
    )
    settings = read_sentence(folder).settings
    assert settings is not None
    assert settings.max_length == 9


def test_a_folder_without_modules_is_a_plain_encoder(tmp_path: Path) -> None:
    assert read_sentence(Folder.at(tmp_path)).settings is None


@pytest.mark.parametrize(
    "kind",
    [
        f"{OLD}.CNN",
        f"{OLD}.LSTM",
        f"{OLD}.WordEmbeddings",
        f"{OLD}.CLIPModel",
        f"{OLD}.LayerNorm",
        "os.system",
        "transformers_modules.evil.Model",
        "modeling_evil.Transformer",
        "evil.sentence_transformers.models.Transformer",
        "Transformer",
        "",
        None,
        7,
        ["x"],
    ],
)
def test_a_module_of_another_kind_is_refused_by_name(kind: object, tmp_path: Path) -> None:
    entries = [*OLD_MODULES, {"idx": 3, "name": "3", "path": "3_X", "type": kind}]
    with pytest.raises(FolderError, match=r"modules\.json: the module type") as caught:
        read_sentence(write(tmp_path, {"modules.json": entries, "1_Pooling/config.json": MEAN}))
    assert ascii(kind)[:50] in str(caught.value)


@pytest.mark.parametrize("path", ["../x", "/etc", "a/b", "..", 7, None, "a\0b", "x" * 999])
def test_a_module_outside_of_the_folder_is_refused(path: object, tmp_path: Path) -> None:
    entries = modules((f"{OLD}.Transformer", ""), (f"{OLD}.Pooling", path))  # type: ignore[arg-type]
    with pytest.raises(UnsafeFileError, match=r"modules\.json"):
        read_sentence(write(tmp_path / "m", {"modules.json": entries}))


@pytest.mark.parametrize(
    "types",
    [
        [],
        ["Transformer"],
        ["Pooling", "Transformer"],
        ["Transformer", "Transformer", "Pooling"],
        ["Transformer", "Pooling", "Normalize", "Dense"],
        ["Transformer", "Pooling", "Pooling"],
        ["Transformer", "Pooling", "Normalize", "Normalize"],
    ],
)
def test_modules_in_another_order_are_refused(types: list[str], tmp_path: Path) -> None:
    entries = modules(*((f"{OLD}.{kind}", "") for kind in types))
    with pytest.raises(FolderError, match="order is not supported"):
        read_sentence(write(tmp_path, {"modules.json": entries}))


BAD = {
    "pooling flag": ("1_Pooling/config.json", {"pooling_mode_mean_tokens": "yes"}, "true or false"),
    "pooling none": ("1_Pooling/config.json", {"pooling_mode_mean_tokens": False}, "no kind"),
    "pooling word": ("1_Pooling/config.json", {"pooling_mode": "median"}, "median"),
    "pooling list": ("1_Pooling/config.json", {"pooling_mode": [["mean"]]}, "pooling_mode"),
    "pooling key": ("1_Pooling/config.json", {**MEAN, "temperature": 2}, "temperature"),
    "length": ("sentence_bert_config.json", {"max_seq_length": 0}, "max_seq_length"),
    "length text": ("sentence_bert_config.json", {"max_seq_length": "9"}, "max_seq_length"),
    "task": ("sentence_bert_config.json", {"transformer_task": "fill-mask"}, "fill-mask"),
    "expansion": ("sentence_bert_config.json", {"query_expansion": {"a": 1}}, "multi-vector"),
    "similarity": ("config_sentence_transformers.json", {"similarity_fn_name": "x"}, "cosine"),
    "similarity list": ("config_sentence_transformers.json", {"similarity_fn_name": []}, None),
    "prompts": ("config_sentence_transformers.json", {"prompts": ["a"]}, "prompts"),
    "default": ("config_sentence_transformers.json", {"default_prompt_name": "q"}, "not a prompt"),
    "kind": ("config_sentence_transformers.json", {"model_type": "CrossEncoder"}, "CrossEncoder"),
    "normalize": ("2_Normalize/config.json", {"module_input_name": "token_embeddings"}, "text"),
    "top": ("modules.json", {"a": 1}, "must be a list"),
    "entry": ("modules.json", ["x"], "must be an object"),
}


@pytest.mark.parametrize(("file", "content", "said"), BAD.values(), ids=BAD.keys())
def test_a_setting_that_makes_no_sense_is_refused_with_its_file(
    file: str, content: object, said: str | None, tmp_path: Path
) -> None:
    files = {"modules.json": OLD_MODULES, "1_Pooling/config.json": MEAN, file: content}
    if said is None:
        assert read_sentence(write(tmp_path, files)).settings is not None
        return
    with pytest.raises(FolderError, match=said) as caught:
        read_sentence(write(tmp_path, files))
    assert file in str(caught.value)


def dense_folder(path: Path, **changes: object) -> Folder:
    settings = SentenceSettings(
        dense=(
            DenseLayer(
                inputs=16,
                outputs=4,
                activation="tanh",
                weight=torch.ones(4, 16),
                bias=torch.ones(4),
            ),
        )
    )
    save_model(tiny_model(), tiny_tokenizer(), path, sentence=settings)
    config = json.loads((path / "2_Dense" / "config.json").read_text())
    (path / "2_Dense" / "config.json").write_text(json.dumps({**config, **changes}))
    return Folder.at(path)


def test_a_dense_layer_comes_with_its_weights(tmp_path: Path) -> None:
    dense_folder(tmp_path / "m")
    (layer,) = load_model(tmp_path / "m").sentence.dense
    assert layer.weight is not None
    assert layer.weight.shape == (4, 16)
    assert load_model(tmp_path / "m").sentence.width(16) == 4


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"activation_function": "os.system"}, r"os\.system"),
        ({"activation_function": "torch.nn.modules.activation.Softplus"}, "Softplus"),
        ({"activation_function": None}, "None"),
        ({"use_residual": "yes"}, "use_residual"),
        ({"use_residual": True}, r"missing: residual\.weight"),
        ({"module_input_name": "token_embeddings"}, "token_embeddings"),
        ({"in_features": 8}, r"misshapen: linear\.weight is \(4, 16\) and should be \(4, 8\)"),
        ({"in_features": 1e3}, "in_features"),
        ({"bias": False}, r"left over: linear\.bias"),
        ({"surprise": 1}, "surprise"),
    ],
)
def test_a_dense_layer_that_cannot_be_right_is_refused(
    changes: dict[str, object], said: str, tmp_path: Path
) -> None:
    dense_folder(tmp_path / "m", **changes)
    with pytest.raises(BertsmithError, match=said):
        load_model(tmp_path / "m")


def test_a_dense_layer_that_does_not_fit_the_pooling_is_refused(tmp_path: Path) -> None:
    dense_folder(tmp_path / "m")
    (tmp_path / "m" / "1_Pooling" / "config.json").write_text(
        json.dumps({**MEAN, "pooling_mode_cls_token": True})
    )
    with pytest.raises(FolderError, match="takes 16 columns and gets 32"):
        load_model(tmp_path / "m")


def test_settings_that_contradict_themselves_are_refused() -> None:
    with pytest.raises(ConfigError, match="not among the prompts"):
        SentenceSettings(default_prompt="query")
    with pytest.raises(ConfigError, match="max_length"):
        SentenceSettings(max_length=0)
    with pytest.raises(ConfigError, match="median"):
        SentenceSettings(pooling=("median",))  # type: ignore[arg-type]


def test_old_and_new_pooling_keys_stand_side_by_side() -> None:
    config = sentence_files(SentenceSettings(pooling=("first",)), hidden=16, layers=2).json[
        "1_Pooling/config.json"
    ]
    assert config["word_embedding_dimension"] == 16
    assert config["pooling_mode_cls_token"] is True
    assert config["pooling_mode_mean_tokens"] is False
    assert config["pooling_mode"] == "cls"
    assert config["include_prompt"] is True
