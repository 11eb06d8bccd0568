"""One model in memory for many views and threads: workers, queue, cancellation, fork, weights."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
import time
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from tiny_finetuning import rows

import bertsmith
from bertsmith.errors import FolderError, HardwareError
from bertsmith.folders import load_weights
from bertsmith.nn.inputs import Inputs
from bertsmith.runtime.embedder import Embedder
from bertsmith.runtime.engines.batches import pack_rows
from bertsmith.runtime.engines.engine import EagerEngine
from bertsmith.runtime.engines.workers import Workers
from bertsmith.runtime.host import Host
from bertsmith.runtime.mask_filling import MaskedModel
from bertsmith.runtime.scoring import score_texts

TEXTS = [f"the {'very ' * (n % 7)}old man number {n} ran home" for n in range(60)]


class SmallBatches(EagerEngine):
    """Torch as an engine of several streams and small batches."""

    budget, streams = 40, 3


class Planted:
    """An engine of numbers in place of batches."""

    name, budget = "planted", 10

    def __init__(self, streams: int, fail_at: int | None = None) -> None:
        self.streams, self.fail_at = streams, fail_at
        self.now = self.most = 0
        self.lock = threading.Lock()

    def hidden(self, batch, rows=None):
        if batch == self.fail_at:
            raise MemoryError("planted")
        with self.lock:
            self.now += 1
            self.most = max(self.most, self.now)
        with self.lock:
            self.now -= 1
        return torch.tensor([float(batch)])


def planted(model: MaskedModel, engine: Planted) -> Host:
    return Host(model.host.model, model.tokenizer, engine=engine, threads=engine.streams)


@pytest.mark.parametrize("streams", [1, 3])
def test_streams_lose_no_batch_and_draw_no_more_than_they_need(model, streams) -> None:
    drawn = []

    def batches():
        for number in range(50):
            drawn.append(number)
            yield number

    engine = Planted(streams)
    seen = []
    for batch, value in planted(model, engine).run(engine, batches(), lambda _, hidden: hidden * 2):
        assert float(value) == 2.0 * batch
        seen.append(batch)
        assert len(drawn) <= len(seen) + 2 * streams
    assert sorted(seen) == list(range(50))
    assert engine.most <= streams


@pytest.mark.parametrize("streams", [1, 3])
def test_a_failing_batch_raises_its_own_error(model, streams) -> None:
    engine = Planted(streams, fail_at=20)
    host = planted(model, engine)
    with pytest.raises(MemoryError, match="planted"):
        list(host.run(engine, range(50), lambda _, hidden: hidden))
    assert float(host.submit(7).result()) == 7.0, "the workers go on with the next batch"


def test_eight_threads_get_the_numbers_of_one(classifier) -> None:
    model = bertsmith.load(classifier, precision="fp32")
    texts = [example.texts[0] for example in rows(40, seed=4)]
    parts = [texts[n % 5 :: 2] for n in range(8)]
    alone = [(model.encode(part), model.predict(part)) for part in parts]
    accounts = [bertsmith.EncodingAccount() for _ in parts]

    def work(number: int):
        vectors = model.encode(parts[number], account=accounts[number])
        return vectors, model.predict(parts[number])

    with ThreadPoolExecutor(8) as pool:
        for _ in range(3):
            together = list(pool.map(work, range(8)))
            for (mine, predictions), (vectors, expected) in zip(together, alone, strict=True):
                assert np.array_equal(mine, vectors)
                assert predictions == expected
    assert [account.texts for account in accounts] == [3 * len(part) for part in parts]


def _workers() -> set[threading.Thread]:
    return {one for one in threading.enumerate() if one.name.startswith("bertsmith-worker")}


def test_eight_threads_share_the_workers_of_an_engine_with_streams(classifier) -> None:
    before = _workers()  # of models that other tests keep
    loaded = bertsmith.load(classifier, precision="fp32")
    engine = SmallBatches(loaded.model.encoder, device=torch.device("cpu"), dtype=torch.float32)
    host = Host(loaded.model, loaded.tokenizer, engine=engine, threads=3)
    embedder = Embedder(host, loaded.settings)
    expected = embedder.encode(TEXTS)
    with ThreadPoolExecutor(8) as pool:
        for vectors in pool.map(lambda _: embedder.encode(TEXTS), range(16)):
            assert np.array_equal(vectors, expected)
    assert len(_workers() - before) == 3
    host.close()


def test_vectors_and_predictions_read_the_weights_once(classifier, monkeypatch) -> None:
    fills = []
    fill = load_weights.fill_model
    monkeypatch.setattr(
        load_weights, "fill_model", lambda *a, **k: fills.append(1) or fill(*a, **k)
    )
    model = bertsmith.load(classifier)
    model.encode(["red bird"])
    model.predict(["red bird"])
    assert len(fills) == 1
    encoder = {weight.data_ptr() for weight in model.model.parameters()}
    assert encoder <= {weight.data_ptr() for weight in model.predictor.model.parameters()}
    assert model.predictor is model.predictor


def test_one_object_fills_and_scores_as_the_masked_model_does(folder, model, classifier) -> None:
    loaded = bertsmith.load(folder, precision="fp32")
    text = "the man went to [MASK] store"
    assert loaded.fill(text, top=3) == model.fill(text, top=3)
    assert loaded.score(TEXTS[:4]) == list(score_texts(model, TEXTS[:4]))
    with pytest.raises(FolderError, match="no masked-LM head"):
        bertsmith.load(classifier).fill(text)


def test_scores_come_from_an_engine_with_streams_too(model) -> None:
    plain = list(score_texts(model, TEXTS[:12]))
    engine = SmallBatches(model.host.model.encoder, device=torch.device("cpu"), dtype=torch.float32)
    fast = MaskedModel(Host(model.host.model, model.tokenizer, engine=engine), longest=None)
    for one, other in zip(score_texts(fast, TEXTS[:12]), plain, strict=True):
        assert one.values == pytest.approx(other.values, abs=1e-5)


def test_only_the_rows_that_are_read_come_back(model) -> None:
    ids, _ = model.tokenizer.fast_ids(TEXTS[:3], None)
    (batch,) = pack_rows(ids, budget=1000)
    whole = model.host.hidden(batch)
    some = model.host.hidden(batch, [4, 0, 4])
    assert torch.allclose(some, whole[[4, 0, 4]], atol=1e-6)
    assert torch.equal(model.host.submit(batch, [4]).result(), model.host.hidden(batch, [4]))


def test_the_queue_is_bounded_and_what_waits_can_be_cancelled() -> None:
    workers, gate, ran = Workers(1), threading.Event(), []
    first = workers.submit(gate.wait)
    waiting = [workers.submit(lambda n=n: ran.append(n)) for n in range(3)]  # 4 in all: full
    late = threading.Thread(target=lambda: workers.submit(lambda: ran.append("late")).result())
    late.start()
    late.join(0.05)
    assert late.is_alive(), "a full queue makes its callers wait"
    assert waiting[1].cancel()
    gate.set()
    late.join(10)
    assert first.result()
    workers.close()
    assert ran == [0, 2, "late"]
    with pytest.raises(HardwareError, match="closed"):
        workers.submit(gate.wait)


def test_workers_start_late_and_end_with_their_host(model) -> None:
    def alive() -> int:
        return sum(one.name.startswith("bertsmith-worker") for one in threading.enumerate())

    gc.collect()
    before = alive()
    host = planted(model, Planted(2))
    assert alive() == before
    assert float(host.submit(3).result()) == 3.0
    assert alive() > before
    gone = weakref.ref(host)
    del host
    gc.collect()
    assert gone() is None
    deadline = time.monotonic() + 10
    while alive() > before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert alive() == before


FORKED = """
import os, sys, torch, bertsmith
torch.set_num_threads(2)
model = bertsmith.load(sys.argv[1])
model.encode(["a text"] * 3)
for use in (lambda: model, lambda: bertsmith.load(sys.argv[1])):
    child = os.fork()
    if child == 0:
        try:
            use().encode(["a text"])
        except bertsmith.BertsmithError as fault:
            print(fault, flush=True)
        os._exit(0)
    os.waitpid(child, 0)
model.close()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_forked_process_refuses_a_model_at_once_instead_of_hanging(folder) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FORKED, str(folder)], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    both = done.stdout.splitlines()
    assert len(both) == 2
    assert all("was forked from process" in line and "'spawn'" in line for line in both)


def test_a_researcher_gets_hidden_states_of_a_padded_batch(folder) -> None:
    model, tokenizer = bertsmith.load_model(folder)
    texts = ["the man ran home", "a dog"]
    ids = [torch.from_numpy(tokenizer.encode(text).ids).long() for text in texts]
    padded = torch.nn.utils.rnn.pad_sequence(ids, batch_first=True)
    mask = torch.tensor([[n < len(one) for n in range(padded.shape[1])] for one in ids])
    inputs = Inputs.padded(padded, mask)
    with torch.no_grad():
        hidden = inputs.layout.to_padded(model(inputs).hidden, mask)
        alone = model(Inputs.of(ids[1].numpy(), [len(ids[1])])).hidden
    assert hidden.shape == (2, padded.shape[1], model.spec.hidden)
    assert torch.allclose(hidden[1, : len(ids[1])], alone, atol=1e-6)


def test_predict_in_one_call(classifier) -> None:
    texts = [example.texts[0] for example in rows(5, seed=4)]
    assert bertsmith.predict(classifier, texts, precision="fp32") == bertsmith.load(
        classifier, precision="fp32"
    ).predict(texts)
