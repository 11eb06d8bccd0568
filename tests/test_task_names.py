"""Nobody asks for a task or an objective by name: only its descriptor knows what it is."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from pathlib import Path

import pytest
from source_tree import each_file, place, tree

# Tasks and objectives are known by their descriptors alone: nobody else asks for a name or class.
TASK_NAMES = {"classify", "multilabel", "regress", "tag", "answer", "choose"}
OBJECTIVE_NAMES = {"mlm", "nsp", "sop", "sbo", "rtd"}
TASK_CLASSES = {
    *("Classify", "Multilabel", "Regress", "Tag", "FindAnswer", "Choose"),
    *("MaskedLMObjective", "SpanBoundary", "NextSentence", "SentenceOrder"),
    *("MaskedProgram", "ElectraProgram"),
}
TASK_TABLES = {"tasks/kinds.py", "labeled/targets.py"}
TASK_FILES = ("tasks/classify.py", "tasks/multilabel.py", "tasks/regress.py", "tasks/choose.py")
TASK_FOLDERS = ("tasks/tag/", "tasks/answer/", "objectives/")


def named_tasks(nodes: Iterable[ast.AST | None]) -> int:
    known = TASK_NAMES | OBJECTIVE_NAMES
    return sum(isinstance(node, ast.Constant) and node.value in known for node in nodes)


def asks_for_a_task(node: ast.AST) -> bool:
    """A comparison with a task's name, a collection or table of names, isinstance of its class."""
    if isinstance(node, ast.Compare):
        sides = [node.left, *node.comparators]
        many = [e for side in sides for e in getattr(side, "elts", ())]  # x in ("tag", "other")
        return named_tasks([*sides, *many]) > 0
    if isinstance(node, ast.MatchValue):
        return named_tasks([node.value]) > 0
    if isinstance(node, ast.Tuple | ast.List | ast.Set):
        return named_tasks(node.elts) > 1
    if isinstance(node, ast.Dict):
        return named_tasks(node.keys) > 1
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        names = {n.id for arg in node.args[1:] for n in ast.walk(arg) if isinstance(n, ast.Name)}
        return node.func.id in ("isinstance", "issubclass") and bool(names & TASK_CLASSES)
    return False


@each_file
def test_no_branch_on_a_task_or_objective_outside_its_descriptor(file: Path) -> None:
    where = place(file)
    if where in TASK_TABLES or where in TASK_FILES or where.startswith(TASK_FOLDERS):
        return
    for node in ast.walk(tree(file)):
        assert not asks_for_a_task(node), f"{where}:{getattr(node, 'lineno', 0)} asks for a task"


@pytest.mark.parametrize(
    "code",
    [
        'task.name == "tag"',
        'name in ("classify", other)',
        'name in ("classify", "regress")',
        'table = {"tag": 1, "answer": 2}',
        "isinstance(task, Tag | None)",
        'name in ("mlm", "sbo")',
        'match name:\n    case "choose":\n        pass',
    ],
)
def test_a_branch_on_a_task_is_seen(code: str) -> None:
    assert any(asks_for_a_task(node) for node in ast.walk(ast.parse(code)))
