"""A kind of training of one's own, from a file of smileys to a served answer; src is untouched."""

from pathlib import Path

from running_service import KEY, RunningService
from tiny_finetuning import RECIPE, tiny_folder
from tiny_finetuning import rows as tiny_rows

from bertsmith import Client, load
from bertsmith.api.train import train
from bertsmith.cli.views.results import training_lines
from bertsmith.labeled.example import Example, Label
from bertsmith.report.elements.page import heading
from bertsmith.training.kind import TrainingKind, TrainingRequest
from bertsmith.training.kinds.labeled.learner import labeled_learner
from bertsmith.training.kinds.labeled.recipe import FinetuneRecipe
from bertsmith.training.kinds.labeled.rows import LabeledRows
from bertsmith.training.learner import TrainingJob


def read(reading):
    """A row a line: a text that ends in a smiley."""
    lines = enumerate(reading.request.data.read_text().splitlines(), start=1)
    examples = []
    for number, line in lines:
        text, _, smiley = line.rpartition(" ")
        glad = Label("glad" if smiley == ":)" else "sad")
        named = {"source": "smileys.txt", "line": number, "id": str(number)}
        examples.append(Example(texts=(text,), target=glad, **named))
    request, rows = reading.request, LabeledRows(train=examples[20:], dev=examples[:20])
    return TrainingJob(
        recipe=reading.recipe, task="classify", model=request.model, rows=rows, out=request.out
    )


def prove(making):
    """How many of the rows the folder on disk judges as their writers did."""
    rows = making.job.rows.dev
    with load(making.job.folder, precision="fp32") as model:
        said = [one.value for one in model.predict([row.texts[0] for row in rows])]
    right = sum(one == row.target.name for one, row in zip(said, rows, strict=True))
    return {"dev": {"rows": len(rows), "main": "right", "figures": {"right": right / len(rows)}}}


SMILEYS = TrainingKind(
    name="smileys",
    recipe=lambda request: FinetuneRecipe.model_validate(dict(RECIPE)),
    check=lambda request, recipe: None,
    read=read,
    learner=labeled_learner,
    prove=prove,
    sections=lambda record: [heading(f"{record['dev']['figures']['right']:.0%} of smiles")],
)


def test_a_file_becomes_a_record_a_page_and_a_served_answer(tmp_path: Path) -> None:
    signs = {"yes": ":)", "no": ":("}
    lines = [f"{row.texts[0]} {signs[row.target.name]}" for row in tiny_rows(120)]
    data, out = tmp_path / "smileys.txt", tmp_path / "out"
    data.write_text("\n".join(lines))
    request = TrainingRequest(data=data, model=tiny_folder(tmp_path / "m"), out=out, seeds=2)
    done = train(SMILEYS, request)
    assert (done.record["kind"], len(done.record["seeds"])) == ("smileys", 2)
    share = done.metrics["right"]
    assert share > 0.7
    assert f"{share:.0%} of smiles" in done.report.read_text()
    lines = training_lines(out, done.record, SMILEYS.result(done.record), done.report)
    assert any(line.split() == ["right", f"{share:.4f}"] for line in lines)
    service = RunningService({"smileys": out})
    with Client(service.address, key=KEY) as client:
        assert client.predict(["the bird in a tree"])[0][0]["label"] in ("glad", "sad")
    service.close()
