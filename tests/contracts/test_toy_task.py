"""A task of one's own, ratings in order: from a file to a report and to predictions."""

import json
import random
from dataclasses import dataclass

import numpy as np
import pytest
from tiny_finetuning import tiny_folder
from torch.nn.functional import binary_cross_entropy_with_logits as bce

from bertsmith.cli.app import main
from bertsmith.metrics import Metric
from bertsmith.nn.loss import LossSum
from bertsmith.tasks.kinds import TASKS
from bertsmith.tasks.prediction import Prediction
from bertsmith.tasks.task import TaskKind, WholeText


@dataclass(frozen=True, slots=True, kw_only=True)
class Ordinal(WholeText):
    labels: tuple[str, ...]
    kind = property(lambda self: KIND)
    outputs = property(lambda self: len(self.labels) - 1)

    def loss(self, logits, batch):
        return LossSum(bce(logits, batch.wanted, reduction="sum"), batch.examples)

    def decode(self, logits, features, examples):
        return [Prediction(value=self.labels[int((row > 0).sum())]) for row in logits]

    def truth(self, examples):
        return np.array([self.labels.index(example.target.name) for example in examples])

    def loss_targets(self, truth):
        return (truth[:, None] > np.arange(self.outputs)).astype(np.float32)

    def predicted(self, predictions):
        return np.array([self.labels.index(one.value) for one in predictions])


CLOSE = Metric("close", lambda t, p, _: abs(t - p)[:, None], lambda r, _: {"close": (r < 2).mean()})
FIELDS = {"name": "ordinal", "title": "ordinal ratings", "target": "label", "metric": CLOSE}
FIELDS["from_data"] = lambda rows, _: Ordinal(labels=tuple(sorted({r.target.name for r in rows})))
KIND = TaskKind(**FIELDS, from_json=lambda values: Ordinal(labels=tuple(values["labels"])))


def test_a_toy_task_goes_from_file_to_report_to_prediction(tmp_path, monkeypatch) -> None:
    monkeypatch.setitem(TASKS, "ordinal", KIND)
    texts = [" ".join(random.Random(n).choices(("bird", "stone"), k=9)) for n in range(80)]
    rows = [f"{text}\t{text.count('bird') // 2}" for text in texts]
    (tmp_path / "data.tsv").write_text("\n".join(["text\tlabel", *rows]))
    monkeypatch.chdir(tmp_path)
    train = f"finetune data.tsv --model {tiny_folder(tmp_path / 'tiny')} --out out --task ordinal"
    for words in (train, "predict out data.tsv --out p.jsonl"):
        with pytest.raises(SystemExit, match="0"):
            main(words.split())
    assert "ordinal ratings" in (tmp_path / "out" / "report.html").read_text()
    assert all(json.loads(row)["prediction"] in "01234" for row in (tmp_path / "p.jsonl").open())
