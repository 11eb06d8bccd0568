"""B2: the source has no call that could run what a file says, and no check that -O removes."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import bertsmith

pytestmark = pytest.mark.reliability

SOURCE = Path(bertsmith.__file__).parent
PICKLE_OWNER = "folders/pickle_child.py"
FORBIDDEN_CALLS = {
    "eval",
    "exec",
    "compile",
    "__import__",
    "pickle.load",
    "pickle.loads",
    "pickle.Unpickler",
    "torch.load",
    "torch.jit.load",
    "torch.hub.load",
    "torch.distributed.checkpoint.load",
    "joblib.load",
    "dill.load",
    "dill.loads",
    "marshal.loads",
    "shelve.open",
    "yaml.load",
    "yaml.unsafe_load",
    "os.system",
    "os.popen",
    "tempfile.mktemp",
}
FORBIDDEN_NAMES = {
    "all_gather_object",
    "broadcast_object_list",
    "gather_object",
    "scatter_object_list",
    "send_object_list",
    "recv_object_list",
    "extractall",
    "unpack_archive",
}
FORBIDDEN_IMPORTS = {"pickle", "joblib", "dill", "marshal", "shelve", "cloudpickle", "transformers"}


def findings(text: str, name: str) -> Iterator[str]:
    """What a source file does that it must not, with the line."""
    for node in ast.walk(ast.parse(text)):
        line = getattr(node, "lineno", 0)
        if isinstance(node, ast.Assert):
            yield f"{name}:{line}: assert vanishes under -O"
        elif isinstance(node, ast.Import | ast.ImportFrom):
            modules = [alias.name for alias in node.names]
            if isinstance(node, ast.ImportFrom):
                modules = [node.module or ""]
            for module in modules:
                if module.split(".")[0] in FORBIDDEN_IMPORTS:
                    yield f"{name}:{line}: import {module}"
        elif isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            if called in FORBIDDEN_CALLS and not (called == "torch.load" and _owns(node, name)):
                yield f"{name}:{line}: {called}()"
            if called.split(".")[-1] in FORBIDDEN_NAMES:
                yield f"{name}:{line}: {called}()"
            for keyword in node.keywords:
                value = ast.unparse(keyword.value)
                if keyword.arg in ("shell", "allow_pickle", "trust_remote_code") and (
                    value != "False"
                ):
                    yield f"{name}:{line}: {keyword.arg}={value}"
                if keyword.arg == "weights_only" and value != "True":
                    yield f"{name}:{line}: weights_only={value}"
        elif isinstance(node, ast.ExceptHandler) and node.type is None:
            yield f"{name}:{line}: bare except"


def _owns(node: ast.Call, name: str) -> bool:
    """The one file that may call torch.load, and only in its restricted form."""
    restricted = any(
        keyword.arg == "weights_only" and ast.unparse(keyword.value) == "True"
        for keyword in node.keywords
    )
    return name == PICKLE_OWNER and restricted


def test_no_source_file_can_run_what_a_file_says() -> None:
    files = sorted(SOURCE.rglob("*.py"))
    assert len(files) > 20
    found = [
        finding
        for file in files
        for finding in findings(
            file.read_text(encoding="utf-8"), file.relative_to(SOURCE).as_posix()
        )
    ]
    assert found == []


@pytest.mark.parametrize(
    "text",
    [
        "import pickle",
        "from joblib import load",
        "import torch\ntorch.load('x')",
        "torch.load('x', weights_only=False)",
        "eval('1')",
        "exec('1')",
        "np.load('x', allow_pickle=True)",
        "subprocess.run('x', shell=True)",
        "tarfile.open('x').extractall()",
        "dist.all_gather_object([], 1)",
        "assert x",
        "try:\n    pass\nexcept:\n    pass",
    ],
)
def test_the_scan_finds_what_it_looks_for(text: str) -> None:
    assert list(findings(text, "planted.py"))


def test_only_the_pickle_child_loads_and_only_restricted() -> None:
    text = "torch.load(f, weights_only=True)"
    assert not list(findings(text, PICKLE_OWNER))
    assert list(findings(text, "folders/read.py"))
    assert list(findings("torch.load(f, weights_only=False)", PICKLE_OWNER))
    assert list(findings("torch.load(f)", PICKLE_OWNER))
