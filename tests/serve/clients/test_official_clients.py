"""The official openai client, and schemathesis on /openapi.json, against a real service."""

from __future__ import annotations

import os
from collections.abc import Iterator

import httpx
import numpy as np
import openai
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from service_process import ServiceProcess
from tiny_finetuning import tiny_folder

import bertsmith

KEY = "a-key-of-the-tests-0123456789"
LONG = bool(os.environ.get("BERTSMITH_LONG"))
EXAMPLES = 10_000 if LONG else 60
TEXTS = ["the bird", "the man went"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> str:
    return tiny_folder(tmp_path_factory.mktemp("official") / "model")


@pytest.fixture(scope="module")
def service(folder: str) -> Iterator[ServiceProcess]:
    one = ServiceProcess(f"tiny={folder}", key=KEY)
    yield one
    one.close()


@pytest.fixture
def client(service: ServiceProcess) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{service.url}/v1", api_key=KEY, max_retries=0) as one:
        yield one


def test_openai_embeddings_and_models(client: openai.OpenAI, folder: str) -> None:
    with bertsmith.load(folder, precision="fp32") as model:
        wanted = model.encode(TEXTS)
    found = client.embeddings.create(input=TEXTS, model="tiny")
    assert np.abs(np.array([one.embedding for one in found.data]) - wanted).max() < 1e-5
    assert [one.index for one in found.data] == [0, 1]
    assert found.usage.prompt_tokens > 0
    floats = client.embeddings.create(input=TEXTS[0], model="tiny", encoding_format="float")
    assert np.abs(np.array(floats.data[0].embedding) - wanted[0]).max() < 1e-5
    assert (
        len(client.embeddings.create(input=TEXTS, model="tiny", dimensions=8).data[0].embedding)
        == 8
    )
    assert [one.id for one in client.models.list()] == ["tiny"]
    assert client.models.retrieve("tiny").object == "model"


def test_openai_errors_are_those_that_its_users_catch(
    client: openai.OpenAI, service: ServiceProcess
) -> None:
    with pytest.raises(openai.NotFoundError, match="no model has this name"):
        client.embeddings.create(input=TEXTS, model="nobody")
    with pytest.raises(openai.UnprocessableEntityError, match="dimensions"):
        client.embeddings.create(input=TEXTS, model="tiny", dimensions=9_999)
    with pytest.raises(openai.BadRequestError, match="empty"):
        client.embeddings.create(input=[], model="tiny")
    stranger = openai.OpenAI(base_url=f"{service.url}/v1", api_key="wrong" * 5, max_retries=0)
    with stranger, pytest.raises(openai.AuthenticationError):
        stranger.models.list()


def test_bodies_made_from_the_schemas_never_break_the_service(service: ServiceProcess) -> None:
    headers = {"authorization": f"Bearer {KEY}"}
    schema = schemathesis.openapi.from_url(f"{service.url}/openapi.json", headers=headers)
    operations = [found.ok() for found in schema.get_all_operations()]
    assert len(operations) > 20
    strategies = st.one_of([operation.as_strategy() for operation in operations])
    seen = set()

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=strategies)
    def check(case) -> None:
        answer = case.call(headers=headers)
        seen.add(answer.status_code)
        assert answer.status_code < 500 or answer.status_code == 503, answer.text
        if answer.status_code >= 400 and case.method != "HEAD":
            assert answer.json()["error"]

    check()
    assert 200 in seen
    assert httpx.get(f"{service.url}/health/ready", headers=headers).status_code == 200
