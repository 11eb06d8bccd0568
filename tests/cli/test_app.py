"""The shell of the command line: fast help, clear errors, honest exit codes."""

from __future__ import annotations

import errno
import importlib
import logging
import pkgutil
import re
import resource
import signal
import subprocess
import sys

import pytest
import typer
from command_line import COMMAND, environment, fresh, run

import bertsmith
from bertsmith.cli import app
from bertsmith.cli.command_table import HEADINGS, Entry
from bertsmith.errors import FolderError, WriteError


@pytest.fixture(autouse=True)
def _quiet_after() -> None:
    yield
    logging.getLogger("bertsmith").handlers.clear()
    logging.getLogger("bertsmith").setLevel(logging.NOTSET)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def plant(monkeypatch: pytest.MonkeyPatch, function: object) -> None:
    """Put a command called `planted` into the table."""
    monkeypatch.setitem(app.COMMANDS, "planted", Entry("planted_command:it", "A test."))
    module = type(sys)("planted_command")
    module.it = function  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "planted_command", module)


def failing(error: BaseException):
    def command() -> None:
        """Fail."""
        raise error

    return command


def test_help_answers_at_once_and_imports_no_command() -> None:
    script = (
        "import sys\nfrom bertsmith.cli.app import main\n"
        "try:\n    main(['--help'])\n"
        "except SystemExit:\n"
        "    heavy = {'torch', 'numpy', 'typer', 'rich', 'tokenizers', 'pydantic'}\n"
        "    sys.exit(','.join(heavy & set(sys.modules)) or 0)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment(), capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr
    spent = []
    for _ in range(5):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        fresh("--help")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    assert min(spent) < 0.3  # CPU, busy or not; 0.05 s on an idle machine


def test_importing_the_package_is_quick_and_light() -> None:
    script = (
        "import time, sys\nstart = time.process_time()\nimport bertsmith\n"  # busy or not
        "print(time.process_time() - start, 'torch' in sys.modules, 'numpy' in sys.modules)"
    )
    outputs = [
        subprocess.run(
            [sys.executable, "-c", script], env=environment(), capture_output=True, check=True
        ).stdout.split()
        for _ in range(3)
    ]
    assert min(float(seconds) for seconds, _, _ in outputs) < 0.05
    assert outputs[0][1:] == [b"False", b"False"]


def test_the_public_names_are_there_and_others_are_not() -> None:
    for name in bertsmith.__all__:
        assert getattr(bertsmith, name) is not None
    assert dir(bertsmith) == sorted(bertsmith.__all__)
    packages = {module.name for module in pkgutil.iter_modules(bertsmith.__path__)}
    assert not packages & set(bertsmith.__all__)  # importing the package would hide the name
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = bertsmith.nothing  # type: ignore[attr-defined]


def test_the_table_names_commands_that_exist_and_explain_themselves() -> None:
    for name, entry in app.COMMANDS.items():
        module, _, attribute = entry.home.partition(":")
        target = getattr(importlib.import_module(module), attribute)
        assert callable(target), name
        assert isinstance(target, typer.Typer) or target.__doc__, name


def test_every_command_has_help(capsys) -> None:
    for name in app.COMMANDS:
        assert run(*name.split(), "--help") == 0
        shown = capsys.readouterr().out
        assert f"bertsmith {name}" in shown
        assert "\x1b" not in shown


def test_options_are_shown_in_groups_the_rare_ones_on_request(capsys) -> None:
    run("finetune", "--help")
    shown = capsys.readouterr().out
    titles = ["Model:", "Data:", "Training:", "Compute:", "Output:"]
    places = [shown.index(f"\n{title}\n") for title in titles]
    assert places == sorted(places)
    assert places[0] < shown.index("--model MODEL") < places[1] < shown.index("--label COLUMN")
    assert "--word-prefix" not in shown
    assert re.search(r"\d+ more options: bertsmith finetune --help-all", shown)
    run("finetune", "--help-all")
    shown = capsys.readouterr().out
    assert shown.index("\nData:\n") < shown.index("--word-prefix") < shown.index("\nTraining:\n")
    assert "more options" not in shown


def test_no_help_text_speaks_a_private_dialect(capsys) -> None:
    dialect = re.compile(
        r"\b(goes on|by heart|told|as it is|how often each|a second)\b", re.IGNORECASE
    )
    for name in app.COMMANDS:
        run(*name.split(), "--help")
        found = dialect.search(capsys.readouterr().out)
        assert found is None, f"{name}: {found}"


def test_version_and_help_and_nothing_at_all(capsys) -> None:
    assert run("--version") == 0
    assert capsys.readouterr().out == f"bertsmith {bertsmith.__version__}\n"
    for arguments in ([], ["--help"], ["-h"], ["help"]):
        assert run(*arguments) == 0
        shown = capsys.readouterr().out
        assert re.findall(r"^(\w+):$", shown, re.MULTILINE) == [*HEADINGS, "Options"]
        listed = re.findall(r"^  (\w[\w-]*) ", shown, re.MULTILINE)
        assert listed == [name for under in HEADINGS.values() for name in under]


@pytest.mark.parametrize(
    ("given", "hint"),
    [("emed", "did you mean 'embed'?"), ("zzz", "known: embed"), ("--verison", "'--version'?")],
)
def test_an_unknown_command_gets_a_suggestion(capsys, given, hint) -> None:
    assert run(given) == 2
    streams = capsys.readouterr()
    assert hint in streams.err
    assert streams.out == ""


def test_an_unknown_option_of_a_command_is_a_usage_error(capsys) -> None:
    assert run("embed", "--nonsense") == 2
    assert "nonsense" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "code"), [(FolderError("no such folder"), 2), (WriteError("disk full"), 74)]
)
def test_our_errors_are_one_line_and_their_exit_code(capsys, monkeypatch, error, code) -> None:
    plant(monkeypatch, failing(error))
    assert run("planted") == code
    assert capsys.readouterr().err == f"error: {error}\n"


def test_other_errors_are_short_and_point_at_debug(capsys, monkeypatch) -> None:
    plant(monkeypatch, failing(ZeroDivisionError("by zero")))
    assert run("planted") == 70
    shown = capsys.readouterr().err
    assert shown.startswith("error: ZeroDivisionError: by zero\n")
    assert "--debug" in shown
    assert "Traceback" not in shown
    assert run("--debug", "planted") == 70
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "code", "part"),
    [
        (
            FileNotFoundError(errno.ENOENT, "No such file", "/no/where"),
            74,
            "/no/where: no such file",
        ),
        (OSError(errno.EROFS, "Read-only file system", "/ro/x"), 74, "/ro/x: read-only"),
        (OSError(errno.ENOSPC, "No space left on device"), 74, "no space left"),
        (ValueError("embedded null byte"), 2, "NUL character"),
        (MemoryError(), 71, "not enough memory"),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory"), 71, "not enough memory"),
    ],
    ids=str,
)
def test_a_fault_of_the_system_is_no_bug(capsys, monkeypatch, error, code, part) -> None:
    plant(monkeypatch, failing(error))
    assert run("planted") == code
    shown = capsys.readouterr().err
    assert shown.startswith("error: ")
    assert part in shown
    assert "this is a bug" not in shown


def test_a_pipe_that_breaks_within_a_command_ends_with_141(capsys, monkeypatch) -> None:
    plant(monkeypatch, failing(BrokenPipeError(errno.EPIPE, "Broken pipe")))
    monkeypatch.setattr("bertsmith.cli.app.silence_stdout", lambda: None)
    assert run("planted") == 141
    assert capsys.readouterr().err == ""


def test_an_interrupt_ends_with_130(capsys, monkeypatch) -> None:
    plant(monkeypatch, failing(KeyboardInterrupt()))
    assert run("planted") == 130
    assert capsys.readouterr().err == "interrupted\n"


def test_an_error_cannot_drive_the_terminal(capsys, monkeypatch) -> None:
    plant(monkeypatch, failing(FolderError("evil\x1b[2J\udc80\nname")))
    assert run("planted") == 2
    assert capsys.readouterr().err == "error: evil\\x1b[2J\\udc80\nname\n"


def test_a_closed_pipe_is_quiet() -> None:
    child = subprocess.Popen(
        [*COMMAND, "--help"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()
    )
    assert child.stdout is not None
    child.stdout.close()
    _, errors = child.communicate(timeout=30)
    assert errors == b""


@pytest.mark.parametrize("variables", [{"LC_ALL": "C"}, {"HOME": "", "PYTHONHASHSEED": "1"}])
def test_help_works_in_bare_environments(variables) -> None:
    done = fresh("--help", **variables)
    assert done.returncode == 0
    assert b"\nUse:\n" in done.stdout
