"""The house rules, held with the standard library only: layers, sizes, names, safety."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path

import pytest
from source_tree import (
    FILES,
    PYTHON_FILES,
    ROOT,
    SOURCE,
    TESTS,
    each_file,
    functions,
    imports,
    named_modules,
    part,
    place,
    tree,
)

# From the ground up; parts of one storey never import each other.
LAYERS = (
    ("lazy_names",),
    ("errors",),
    ("wording",),
    ("setting",),
    ("config", "random_keys"),
    ("files",),
    ("hardware",),
    ("text",),
    ("nn",),
    ("models",),
    ("folders",),
    ("labeled",),
    ("corpus",),
    ("metrics",),
    ("objectives", "tasks"),
    ("evaluation",),
    ("report",),
    ("runtime",),
    ("search",),
    ("training",),
    ("sentences", "prompts", "compress", "explain", "audit", "classic"),
    ("studies",),
    ("api",),
    ("serve",),
    ("demo",),
    ("parts",),
    ("cli",),
)
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}
DRAWERS = {"utils", "util", "helpers", "helper", "common", "misc", "base", "core"}
LONGEST_FILE = 400
LONGEST_FUNCTION = 60
MOST_PARAMETERS = 8
MOST_FILES = 22  # in a folder, beside __init__.py
MOST_TEST_FILES = 20
TABLES = {"models/variants", "labeled/formats", "hardware/probes"}  # one file per entry
# Tables whose entries are files, however small: objectives, noises, metrics, optimizers ...
ENTRY_TABLES = TABLES | {
    "files/word_vectors",
    "metrics",
    "objectives",
    "objectives/noise",
    "report/finetune",
    "training/optimizers",
}
ENTRY_TREES = {"cli/commands", "training/kinds"}
LEAST_ALONE = 120  # lines of a file that one other file of its folder needs
MOST_TOGETHER = 350  # lines of both: a longer file is not easier to read
IDEAS_OF_THEIR_OWN = {
    "classic/gpt/workload.py",  # texts and batches, as those of the other language models
    "cli/command_table.py",  # what --help prints before anything is imported
    "folders/word_encoders/hdf5.py",  # a foreign format, read within bounds
    "runtime/generation/greedy.py",  # a search, next to beams
    "runtime/generation/stream.py",  # text that is certain before all of it is written
    "sentences/train/dev.py",  # development figures of every kind of rows
    "serve/openapi.py",  # the description of all routes
    "serve/worker/columns.py",  # what the columns of a folder are called
    "training/loop/finalize.py",  # the end of a run, apart from its steps
    "training/loop/prefetch.py",  # the thread that prepares batches
}
# Files that may do what nobody else may, with the reason.
PICKLE_READER = {"folders/pickle_child.py"}
# typer calls a command by the names of its options, scikit-learn set_params by those of a model
NAMELESS_CALLEES = {"cli/shared/options_of.py", "api/estimators.py"}
ENVIRONMENT_READERS = ("cli/", "hardware/")
ORACLES = {
    "transformers",
    "sentence_transformers",
    "onnxruntime",
    "ctranslate2",
    "rouge_score",
    "sacrebleu",
}


@each_file
def test_imports_point_down(file: Path) -> None:
    own = part(file)
    if own in ("__init__", "__main__"):
        return
    assert own in RANK, f"{own} has no place among the layers"
    for name, line in [*imports(tree(file), file), *named_modules(tree(file))]:
        parts = name.split(".")
        if parts[0] != "bertsmith" or len(parts) == 1:
            continue
        other = parts[1]
        if other in RANK and other != own:
            assert RANK[other] < RANK[own], f"{place(file)}:{line} imports {name} from above"


def test_the_package_itself_imports_nothing_heavy() -> None:
    light = {"__future__", "importlib", "os", "sys", "typing"}
    lazy = light | {"collections.abc", "sys"}
    openmp = "bertsmith.hardware.openmp"  # sets a variable that must be there before torch is
    own = {openmp, "bertsmith.lazy_names"}
    files = (("__init__.py", light | own), ("hardware/openmp.py", light), ("lazy_names.py", lazy))
    for file, allowed in files:
        for node in tree(SOURCE / file).body:
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = (
                    [a.name for a in node.names] if isinstance(node, ast.Import) else [node.module]
                )
                assert set(names) <= allowed, names


def test_commands_import_heavy_libraries_only_when_they_run() -> None:
    for path in FILES:
        if part(path) != "cli":
            continue
        for node in tree(path).body:
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = (
                    [a.name for a in node.names] if isinstance(node, ast.Import) else [node.module]
                )
                roots = {(name or "").partition(".")[0] for name in names}
                heavy = roots & {"torch", "tokenizers", "numpy", "safetensors", "pydantic", "rich"}
                assert not heavy, f"{place(path)}:{node.lineno} imports {heavy} at the top"


@each_file
def test_oracles_are_never_needed_at_run_time(file: Path) -> None:
    for name, line in imports(tree(file), file):
        assert name.partition(".")[0] not in ORACLES, f"{place(file)}:{line} imports {name}"


def test_folders_are_small() -> None:
    sizes = Counter(path.parent for path in FILES if path.name != "__init__.py")
    for folder, count in sizes.items():
        if folder.relative_to(SOURCE).as_posix() not in TABLES:
            assert count <= MOST_FILES, folder


def test_test_files_have_names_of_their_own() -> None:
    """pytest imports them by their names alone, and so are the files that support them."""
    names = Counter(path.name for path in TESTS if path.name != "conftest.py")
    assert [name for name, count in names.items() if count > 1] == []


def test_folders_of_tests_are_small() -> None:
    sizes = Counter(path.parent for path in TESTS)
    assert [folder for folder, count in sizes.items() if count > MOST_TEST_FILES] == []


def test_files_are_short_and_named_by_what_they_hold() -> None:
    for path in PYTHON_FILES:
        assert path.stem not in DRAWERS, path
        assert len(path.read_text(encoding="utf-8").splitlines()) <= LONGEST_FILE, path


@each_file
def test_functions_are_short_and_take_few_parameters(file: Path) -> None:
    for function in functions(tree(file)):
        label = f"{place(file)}:{function.lineno} {function.name}"
        assert (function.end_lineno or 0) - function.lineno < LONGEST_FUNCTION, label
        given = function.args
        names = [a.arg for a in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
        names = [name for name in names if name not in ("self", "cls")]
        assert len(names) <= MOST_PARAMETERS, label
        if place(file) not in NAMELESS_CALLEES:
            assert given.kwarg is None, f"{label} takes **{given.kwarg.arg if given.kwarg else ''}"


def test_no_class_name_is_defined_twice() -> None:
    homes: dict[str, str] = {}
    for path in FILES:
        for node in tree(path).body:
            if isinstance(node, ast.ClassDef):
                where = f"{place(path)}:{node.lineno}"
                assert node.name not in homes, f"{where} {node.name}, also {homes[node.name]}"
                homes[node.name] = where


def test_small_files_join_the_one_file_that_needs_them() -> None:
    """One importer in the same folder: entries of tables, and what is long enough, stay apart."""
    modules = {".".join(("bertsmith", *dotted(path))): path for path in FILES}
    needed_by: dict[Path, set[Path]] = {path: set() for path in FILES}
    for path in FILES:
        for name, _ in [*imports(tree(path), path), *named_modules(tree(path))]:
            if name in modules and modules[name] != path:
                needed_by[modules[name]].add(path)
    lonely = []
    for path, others in needed_by.items():
        if len(others) != 1 or path.name == "__init__.py" or is_entry(path):
            continue
        (other,) = others
        own, both = line_count(path), line_count(path) + line_count(other)
        if place(path) in IDEAS_OF_THEIR_OWN or other.parent != path.parent:
            continue
        if own < LEAST_ALONE and both <= MOST_TOGETHER:
            lonely.append(f"{place(path)}: {own} lines, needed by {place(other)} alone")
    assert lonely == [], "join them, by idea"


def dotted(path: Path) -> tuple[str, ...]:
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return parts[:-1] if parts[-1] == "__init__" else parts


def is_entry(path: Path) -> bool:
    """Whether a file is an entry of a table, or a part of one."""
    where = place(path.parent)
    return where in ENTRY_TABLES or any(where.startswith(f"{one}/") for one in ENTRY_TREES)


def line_count(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def test_a_run_of_the_loop_is_built_in_one_place() -> None:
    built = [
        place(path)
        for path in FILES
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Run"
    ]
    assert built == ["training/learner.py"]


@each_file
def test_modules_and_public_things_say_what_they_are_for(file: Path) -> None:
    module = tree(file)
    assert ast.get_docstring(module), place(file)
    for node in module.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            assert ast.get_docstring(node), f"{place(file)}:{node.lineno} {node.name}"


@each_file
def test_no_file_runs_code_from_data_or_validates_with_assert(file: Path) -> None:
    banned = {"eval", "exec"}
    attributes = {("torch", "load"), ("pickle", "load"), ("pickle", "loads"), ("yaml", "load")}
    for node in ast.walk(tree(file)):
        if isinstance(node, ast.Assert):
            pytest.fail(f"{place(file)}:{node.lineno} asserts; raise an error of errors.py")
        if not isinstance(node, ast.Call):
            continue
        called = node.func
        where = f"{place(file)}:{node.lineno}"
        if isinstance(called, ast.Name):
            assert called.id not in banned, where
        if isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name):
            if place(file) not in PICKLE_READER:
                assert (called.value.id, called.attr) not in attributes, where
            assert not called.attr.endswith("_object_list"), where
        for keyword in node.keywords:
            truth = isinstance(keyword.value, ast.Constant) and keyword.value.value is True
            assert not (keyword.arg in ("shell", "allow_pickle") and truth), where


@each_file
def test_errors_are_not_swallowed(file: Path) -> None:
    for node in ast.walk(tree(file)):
        if isinstance(node, ast.ExceptHandler):
            where = f"{place(file)}:{node.lineno}"
            assert node.type is not None, f"{where} catches everything"
            assert not all(isinstance(x, ast.Pass) for x in node.body), f"{where} swallows"


@each_file
def test_only_commands_and_hardware_read_the_environment(file: Path) -> None:
    if place(file).startswith(ENVIRONMENT_READERS):
        return
    for node in ast.walk(tree(file)):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            name = f"{node.value.id}.{node.attr}"
            assert name not in ("os.environ", "os.getenv"), f"{place(file)}:{node.lineno}"


@each_file
def test_only_commands_print(file: Path) -> None:
    if place(file).startswith("cli/"):
        return
    for node in ast.walk(tree(file)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert node.func.id != "print", f"{place(file)}:{node.lineno} prints"


# What a folder is, the table of kinds alone says; these ask other things of a path.
ASKS_OF_PATHS = {
    "is_analogy_file",  # a file of questions
    "_is_abandoned",  # a temporary file
    "_is_data",  # a file of rows
    "is_address",  # of a database
    *("_has_model", "is_trained"),  # whether a run of its own has ended
    "is_whole",  # a checkpoint
}


@each_file
def test_what_a_folder_is_says_the_table_of_kinds_alone(file: Path) -> None:
    for function in functions(tree(file)):
        given = [ast.unparse(one) for one in (*function.args.args, *function.args.kwonlyargs)]
        asked = [one for one in given if re.search(r"Path\b|Folder\b|^folder\b|^model\b", one)]
        if re.match(r"_?(is|has|can)_", function.name) and asked:
            allowed = place(file) == "folders/kinds.py" or function.name in ASKS_OF_PATHS
            assert allowed, f"{place(file)}:{function.lineno} {function.name} asks what a folder is"


def test_nothing_is_left_undone_and_nothing_names_a_workplace() -> None:
    # Written in pieces, so that this file does not find itself.
    undone = re.compile(
        "|".join(["TO" + "DO", "FIX" + "ME", "XX" + "X\\b", "Not" + "ImplementedError"])
    )
    workplace = re.compile(
        "|".join(["/wo" + "rk/", "/ro" + "ot/", "/opt/" + "(pypi|wheels)", "/tmp/" + "plan"])
    )
    kinds = {".py", ".md", ".toml", ".txt", ".cpp", ".h", ".cfg", ".sh", ""}
    for folder in ("src", "tests", "benchmarks", "docs", ".ci"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.is_file() and path.suffix in kinds:
                _clean(path, undone, workplace)
    for path in sorted(ROOT.iterdir()):
        if path.is_file() and path.suffix in kinds and not path.name.startswith(".git"):
            _clean(path, undone, workplace)


def _clean(path: Path, *patterns: re.Pattern[str]) -> None:
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        for pattern in patterns:
            assert not pattern.search(line), f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
