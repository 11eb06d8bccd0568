"""K-BERT: which branches a text gets, and what the encoder makes of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from planted_knowledge import RECIPE, graph_rows, planted_folder, planted_names, write_graph
from tiny_finetuning import StopAt, tiny_job
from tiny_models import randomized, shrunk
from tiny_tasks import SPECIAL, TASK_WORDS, row, word_tokenizer

from bertsmith.errors import BertsmithError, ConfigError, FolderError, InputFileError
from bertsmith.folders.write import save_model
from bertsmith.labeled.example import Label, Tagged
from bertsmith.labeled.triples import read_triples, triples_of
from bertsmith.models.build import build
from bertsmith.nn.layout import picture
from bertsmith.runtime.load_predictor import load_predictor
from bertsmith.tasks.batch import task_batch
from bertsmith.tasks.classify import Classify
from bertsmith.tasks.enrichment.branches import BranchSettings, Knowledge
from bertsmith.tasks.feature import Feature
from bertsmith.tasks.length import LengthSettings
from bertsmith.tasks.tag.features import tag_features
from bertsmith.training.execution.execution import Execution
from bertsmith.training.kinds.labeled.learner import finetune
from bertsmith.training.kinds.labeled.recipe import KnowledgeSettings

pytestmark = pytest.mark.usefixtures("edited_folders")

FACTS = [
    ("bird", "small", "house"),
    ("bird", "red", "tree blue"),
    ("bird", "never", "third"),
    ("green stone", "round", "river"),
    ("河马", "大", "水"),
]


def knowledge(branches: int = 2) -> Knowledge:
    return Knowledge(graph=triples_of(FACTS), settings=BranchSettings(branches=branches))


def grown(text: str, *, branches: int = 2, room: int = 64) -> tuple[Feature, dict[str, object]]:
    examples = [row(0, [text], Label("a"))]
    task = Classify(labels=("a", "b"))
    features = task.features(examples, word_tokenizer(), LengthSettings(max_length=room))
    some, counts = knowledge(branches).joined(features, examples, word_tokenizer(), room)
    return some[0], counts


def test_a_branch_counts_on_from_its_subject_and_sees_it_alone() -> None:
    feature, counts = grown("large bird river")
    names = feature.encoding.tokens
    assert " ".join(names) == "[CLS] large bird small house red tree blue river [SEP]"
    assert feature.positions is not None
    assert feature.visible is not None
    assert feature.positions.tolist() == [0, 1, 2, 3, 4, 3, 4, 5, 3, 4]
    assert picture(torch.from_numpy(feature.visible)) == [
        "###.....##",
        "###.....##",
        "##########",
        "..###.....",
        "..###.....",
        "..#..###..",
        "..#..###..",
        "..#..###..",
        "###.....##",
        "###.....##",
    ]
    assert counts["rows_with_branch"] == 1
    assert counts["subjects_met"] == 1


def test_the_text_is_never_cut_for_a_branch_and_what_has_no_room_is_counted() -> None:
    plain, _ = grown("large stone river")
    assert plain.visible is None
    assert plain.positions is None
    tight, counts = grown("large bird river", room=7)
    assert tight.encoding.tokens[3:5] == ["small", "house"]
    assert len(tight) == 7
    assert counts["no_room"] == 1
    full, counts = grown("large bird river", room=5)
    assert len(full) == 5
    assert full.visible is None
    assert counts["no_room"] == 2


def test_subjects_are_whole_words_or_characters_and_the_longest_wins() -> None:
    graph = triples_of([*FACTS, ("河", "x", "y"), ("stone", "x", "y")])
    found = graph.entities("Birdhouse, Bird; green  stone 小河马河")
    assert [one.subject for one in found] == ["bird", "green stone", "河马", "河"]
    assert triples_of(FACTS, match_case=True).entities("Bird") == []


def test_tags_are_read_from_the_text_alone() -> None:
    text = "bird river"
    examples = [row(0, [text], Tagged(((0, 4), (5, 10)), ("B-x", "O")))]
    features = tag_features(examples, word_tokenizer(), LengthSettings(), {"B-x": 0, "O": 1})
    some, _ = knowledge().joined(features, examples, word_tokenizer(), 64)
    assert some[0].at is not None
    assert [some[0].encoding.tokens[at] for at in some[0].at] == ["bird", "river"]


def test_hidden_states_equal_transformers_under_float_masks_and_soft_positions(
    tmp_path: Path,
) -> None:
    transformers = pytest.importorskip("transformers")
    words = len(SPECIAL) + len(TASK_WORDS)
    spec = shrunk("bert", vocab_size=words, hidden=32, heads=2, rows=64)
    model = randomized(build("bert", replace(spec, dropout=0.0, attention_dropout=0.0)))
    save_model(model, word_tokenizer(), tmp_path)
    peer = transformers.BertModel.from_pretrained(
        tmp_path, add_pooling_layer=False, attn_implementation="eager"
    ).eval()
    features = [grown(text)[0] for text in ("large bird river", "red", "green stone bird")]
    batch = task_batch(features)
    with torch.no_grad():
        hidden = batch.layout.to_padded(model(batch.inputs).hidden)
    for number, feature in enumerate(features):
        size = len(feature)
        visible = np.ones((size, size), bool) if feature.visible is None else feature.visible
        places = np.arange(size) if feature.positions is None else feature.positions
        mask = torch.where(torch.from_numpy(visible), 0.0, -1e30)[None, None]
        with torch.no_grad():
            wanted = peer(
                input_ids=torch.from_numpy(feature.encoding.ids)[None].long(),
                attention_mask=mask,
                position_ids=torch.from_numpy(places)[None].long(),
            ).last_hidden_state[0]
        assert torch.allclose(hidden[number, :size], wanted, atol=2e-5)


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("a\tb\tc\nd\te\n", "line 2: 2 fields"),
        ("a\tb\tc\nd\t\te\n", "line 2: the predicate is empty"),
        ("\tb\tc\n", "line 1: the subject is empty"),
        ("\n\n", "there is no triple"),
    ],
)
def test_bad_triples_are_refused_by_file_and_line(tmp_path: Path, lines: str, said: str) -> None:
    (tmp_path / "bad.tsv").write_text(lines)
    with pytest.raises(InputFileError, match=said):
        read_triples(tmp_path / "bad.tsv")
    with pytest.raises(InputFileError, match="no such file"):
        read_triples(tmp_path / "none.tsv")


def test_a_run_resumes_exactly_and_another_graph_is_refused(tmp_path: Path) -> None:
    source = planted_folder(tmp_path / "model")
    names = planted_names()[:200]
    rows = graph_rows(names)
    graph = KnowledgeSettings(file=write_graph(tmp_path / "facts.tsv", names))
    recipe = RECIPE.model_copy(update={"knowledge": graph})
    job = tiny_job(source, tmp_path / "straight", recipe=recipe, train=rows[:160], dev=rows[160:])
    finetune(job)
    cut = replace(job, out=tmp_path / "cut")
    stop = StopAt(7)
    finetune(cut, execution=Execution(stop=stop), watch=stop)
    write_graph(tmp_path / "facts.tsv", names[::-1])
    with pytest.raises(BertsmithError, match=r"knowledge\.digest"):
        finetune(cut)
    write_graph(tmp_path / "facts.tsv", names)
    finetune(cut)
    weights = [(tmp_path / n / "model.safetensors").read_bytes() for n in ("straight", "cut")]
    assert weights[0] == weights[1]
    stored = tmp_path / "cut" / "knowledge.json"
    stored.write_text(stored.read_text().replace("fruit", "stone", 1))
    with pytest.raises(FolderError, match="not the graph that the model was trained with"):
        load_predictor(tmp_path / "cut")


def test_another_graph_is_read_at_prediction_and_its_hash_is_named(tmp_path: Path) -> None:
    source = planted_folder(tmp_path / "model")
    names = planted_names()[:60]
    rows = graph_rows(names)
    graph = KnowledgeSettings(file=write_graph(tmp_path / "facts.tsv", names))
    recipe = RECIPE.model_copy(update={"knowledge": graph})
    job = tiny_job(source, tmp_path / "with", recipe=recipe, train=rows[:40], dev=rows[40:])
    finetune(job)
    swapped = [(name, "stone" if kind == "fruit" else "fruit") for name, kind in names]
    other = write_graph(tmp_path / "other.tsv", swapped)
    notes: list[str] = []
    plain = load_predictor(tmp_path / "with")
    changed = load_predictor(tmp_path / "with", knowledge=other, notice=notes.append)
    digest = read_triples(tmp_path / "other.tsv").digest[:12]
    assert f"hash {digest}" in notes[0]
    assert "instead of the graph of training" in notes[0]
    assert digest in changed.settle(1)
    assert digest not in plain.settle(1)
    with_own, with_other = (one.answered(rows[40:])[1].logits for one in (plain, changed))
    assert not np.array_equal(np.stack(with_own), np.stack(with_other))
    same = load_predictor(tmp_path / "with", knowledge=tmp_path / "facts.tsv", notice=notes.append)
    assert "is the graph of training" in notes[-1]
    assert same.settle(1) == plain.settle(1)
    finetune(tiny_job(source, tmp_path / "without", train=rows[:40], dev=rows[40:]))
    with pytest.raises(ConfigError, match="was trained without a graph"):
        load_predictor(tmp_path / "without", knowledge=other)


def test_a_graph_without_a_subject_in_the_texts_is_refused(tmp_path: Path) -> None:
    source = planted_folder(tmp_path / "model")
    rows = graph_rows(planted_names()[:20])
    graph = KnowledgeSettings(file=write_graph(tmp_path / "facts.tsv", [("zork", "fruit")]))
    recipe = RECIPE.model_copy(update={"knowledge": graph})
    with pytest.raises(ConfigError, match=r"facts\.tsv: none of its 1 subjects is in a training"):
        finetune(tiny_job(source, None, recipe=recipe, train=rows[:15], dev=rows[15:]))


def test_tasks_that_cannot_hold_branches_are_refused_by_name(tmp_path: Path) -> None:
    source = planted_folder(tmp_path / "model")
    graph = KnowledgeSettings(file=write_graph(tmp_path / "facts.tsv", planted_names()[:5]))
    recipe = RECIPE.model_copy(update={"knowledge": graph})
    for task in ("answer", "choose"):
        with pytest.raises(ConfigError, match=f"not for the task {task}"):
            finetune(tiny_job(source, None, task, recipe=recipe))
