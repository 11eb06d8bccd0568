"""How long torch's threads spin: set before torch is loaded, unless the user decided."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from bertsmith.hardware.openmp import DECIDED_BY, SPIN_ROUNDS, SPIN_VARIABLE

SHOW = "import json, os; print(json.dumps(dict(os.environ)))"


def variables_after(code: str, **chosen: str) -> dict[str, str]:
    """The environment of a new Python process after it has run the code."""
    clean = {name: value for name, value in os.environ.items() if name not in DECIDED_BY}
    clean["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\n{SHOW}"],
        env=clean | chosen,
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.parametrize(
    "code",
    [
        "import bertsmith",
        "import bertsmith.cli.app",
        "import bertsmith.corpus.worker",  # a worker process unpickles a name of this module
        "from bertsmith.training.execution.launch import launch_variables\n"
        "import os; os.environ |= launch_variables(2)",
    ],
)
def test_every_way_in_sets_a_short_spin(code: str) -> None:
    assert variables_after(code)[SPIN_VARIABLE] == str(SPIN_ROUNDS)


@pytest.mark.parametrize("name", DECIDED_BY)
def test_a_choice_of_the_user_wins(name: str) -> None:
    after = variables_after("import bertsmith", **{name: "77"})
    assert {one: after[one] for one in DECIDED_BY if one in after} == {name: "77"}


def test_a_process_that_has_torch_already_is_left_alone() -> None:
    planted = "import sys, types; sys.modules['torch'] = types.ModuleType('torch')"
    assert SPIN_VARIABLE not in variables_after(f"{planted}\nimport bertsmith")


def test_torch_is_loaded_after_the_spin_is_set() -> None:
    code = "import bertsmith, sys\nassert 'torch' not in sys.modules"
    assert SPIN_VARIABLE in variables_after(code)
