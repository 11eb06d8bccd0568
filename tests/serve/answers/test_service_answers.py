"""What the service says of first columns, choices and files, and what it refuses to ignore."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from bertsmith.models.sentence_spec import DenseLayer
from bertsmith.runtime.answers import named_logits
from bertsmith.serve.dialects.own import ChooseForm
from bertsmith.serve.dialects.own import choose as choose_route
from bertsmith.serve.dialects.tei import PredictForm, narrowed_headers
from bertsmith.serve.failures import RequestError, without_paths
from bertsmith.serve.service import ROUTES
from bertsmith.serve.worker.columns import truncatable
from bertsmith.serve.worker.operations import PIPELINES


def layer(weight: np.ndarray) -> DenseLayer:
    return DenseLayer(
        inputs=weight.shape[1],
        outputs=weight.shape[0],
        activation="identity",
        weight=torch.from_numpy(weight).float(),
    )


def test_first_columns_are_of_use_after_whitening_or_training_for_them(tmp_path) -> None:
    rotation = np.linalg.qr(np.random.default_rng(0).normal(size=(6, 6)))[0]
    scales = np.linspace(1.0, 4.0, 6)[:, None]
    assert truncatable(tmp_path, (layer(rotation * scales),)) is True
    assert truncatable(tmp_path, (layer(rotation * scales[::-1]),)) is None  # least variance first
    assert truncatable(tmp_path, (layer(rotation),)) is None  # orders nothing
    assert truncatable(tmp_path, (layer(np.random.default_rng(1).normal(size=(6, 6))),)) is None
    assert truncatable(tmp_path, ()) is None
    record = tmp_path / "proof.json"
    record.write_text(json.dumps({"kind": "sentences", "recipe": {"matryoshka": {"dims": []}}}))
    assert truncatable(tmp_path, ()) is None
    record.write_text(json.dumps({"kind": "sentences", "recipe": {"matryoshka": {"dims": [8, 4]}}}))
    assert truncatable(tmp_path, ()) is True
    record.write_text("{")
    assert truncatable(tmp_path, ()) is None


def test_the_header_of_narrowed_vectors_says_what_is_known() -> None:
    class Answers:
        def __init__(self, known: bool | None) -> None:
            self.served = type("Served", (), {"description": {"truncatable": known}})

    assert narrowed_headers(Answers(True), 8) == ((b"x-truncatable", b"true"),)
    assert narrowed_headers(Answers(None), 8) == ((b"x-truncatable", b"unknown"),)
    assert narrowed_headers(Answers(None), None) == ()


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("/srv/models/x/model.safetensors: damaged", "(a file of the service): damaged"),
        ("cannot read '/home/a/b.json', line 3", "cannot read '(a file of the service)', line 3"),
        ("send 1/2 of it to /embed", "send 1/2 of it to /embed"),
        ("</s> and [MASK]", "</s> and [MASK]"),
    ],
)
def test_messages_to_clients_have_no_path(message: str, shown: str) -> None:
    assert without_paths(message) == shown


def test_every_task_has_a_route() -> None:
    routed = {route.ability for methods in ROUTES.values() for route in methods.values()}
    assert set(PIPELINES.values()) <= routed
    assert ROUTES["/choose"]["POST"].handler is choose_route
    with pytest.raises(ValueError, match="choices"):
        ChooseForm(context="a", choices=["b"])


def test_a_prompt_where_none_is_read_is_refused() -> None:
    with pytest.raises(RequestError, match="prompt_name"):
        PredictForm(inputs="a", prompt_name="query").check_without_prompt()


def test_logits_have_the_names_of_labels_choices_or_a_score() -> None:
    assert named_logits(np.array([1.0, 2.0]), ("no", "yes")) == {"no": 1.0, "yes": 2.0}
    assert named_logits(np.array([[0.5], [1.5], [2.5]]), ()) == {"0": 0.5, "1": 1.5, "2": 2.5}
    assert named_logits(np.array([0.25]), ()) == {"score": 0.25}
