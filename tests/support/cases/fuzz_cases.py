"""Commands with one thing wrong: an option, a path, a file of a folder, or the surroundings.

Each case is made from its number alone, so that one can be made again.
"""

from __future__ import annotations

import json
import os
import random
import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

import typer.main
from fuzz_material import Input, InputFolder, Material, Output, working_commands

from bertsmith.cli.app import load_command
from bertsmith.cli.command_table import command_of

LARGE = ("1e9", "1e300", "99999999", "99999999999999999999")
NUMBERS = (*LARGE, "0", "-1", "-0.0", "1e-320", "1.5", "nan", "inf", "-inf", "1e400", "0x10", "1_0")
TEXTS = (
    "",
    " ",
    "-",
    "=",
    "[1",
    "a=b",
    "null",
    "%s{}",
    "字",
    "\x1b[31mred",
    "two\nlines",
    "\udcff\udcfe",
    "\ud800",
    "nul\0byte",
    "x" * 3_000,
    "../..",
    "1,2,3",
)
SETTINGS = (
    *("plan.epochs", "plan.batch", "plan.micro_tokens", "plan.evaluations", "optimizer.lr"),
    *("optimizer.betas", "save.every", "save.seconds", "run.seed", "run.threads", "run.devices"),
    *("length.max_length", "head.dropout", "encoder.special_tokens", "averaging.tail"),
    *("best.patience", "batch.tokens", "batch.micro_tokens", "schedule.steps", "schedule.warmup"),
    *("schedule.budget", "model.size", "log.every", "eval.held_out", "no.such", "task", ""),
)
VALUES: tuple[object, ...] = (
    *(None, True, 0, -1, 3, 10**12, 10**400, 1e300, float("nan"), float("inf"), "", "x", "\0"),
    *("\x1b[2J", "../../x", [], ["0", "0"], [None], [[1]], {}, {"a": {"b": []}}, "x" * 5_000),
)


# What a message calls a path that has no name to show.
ALSO = {
    "nul": ("embedded null byte", "NUL character"),
    "dash": ("stdin",),
    "empty": ("folder", "''", "argument"),
}
MAIN_FILES = re.compile(
    r"(bertsmith|config|tokenizer|modules|proof|manifest|special_tokens_map|tokenizer_config)\.json"
    r"|vocab\.txt|model\.safetensors"
)


@dataclass(frozen=True)
class Surroundings:
    """What a process finds around it; see fuzz_job.py."""

    stdin: str = "empty"
    stdout: str = "file"
    stderr: str = "file"
    encoding: str = "utf-8"
    environment: dict[str, str | None] = field(default_factory=dict)
    file_limit: int | None = None
    mounts: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Case:
    """One call, what is wrong with it, and the words of which its message must have one."""

    number: int
    fault: str
    arguments: list[str]
    names: tuple[str, ...]
    around: Surroundings = Surroundings()
    asks_much: bool = False  # a number so large that the work is stopped by a signal


def make_case(number: int, material: Material, place: Path) -> Case:
    """The case of a number; its files lie in `place`."""
    rng = random.Random(f"commands {number}")
    out = place / "out"
    out.mkdir(parents=True)
    weights, commands = zip(*working_commands(material, out), strict=True)
    arguments = list(rng.choices(commands, weights)[0])
    if arguments[:2] in (["index", "add"], ["index", "delete"]):  # what they change is their own
        shutil.copytree(arguments[2], place / "index")
        arguments[2] = InputFolder(place / "index")
    kinds: list[Callable[..., Case]] = [_option, _option, _option, _surroundings]
    if any(isinstance(one, Input | InputFolder | Output) for one in arguments):
        kinds += [_path, _path]
    if any(isinstance(one, InputFolder) for one in arguments):
        kinds += [_folder, _folder, _folder]
    return rng.choice(kinds)(rng, number, arguments, place)


def _option(rng: random.Random, number: int, arguments: list[str], place: Path) -> Case:
    """An option with a value that it cannot have, or barely."""
    parameter, name = _parameter(rng, arguments)
    if parameter is None:
        value = rng.choice(TEXTS)
        return Case(
            number,
            f"argument {value!r:.40}",
            [*arguments, value],
            (value, arguments[0], "NUL character"),
        )
    if parameter.is_flag:
        names = (name, *_given(arguments))
        slow = name == "--verify-resume"  # several runs, killed and resumed
        return Case(number, f"flag {name}", [*arguments, name], names, asks_much=slow)
    if "Path" in str(parameter.type_descriptor.annotation) and rng.random() < 0.7:
        fault, value = _bad_path(rng, place, rng.choice((Input, Output)))
    else:
        value = rng.choice((*NUMBERS, *TEXTS, *_choices(parameter)))
        fault = f"{value!r:.40}"
    if name == "--set":
        value = f"{rng.choice(SETTINGS)}={value}"
    key = name.removeprefix("--").replace("-", "_")
    names = (
        name,
        key,
        key.split("_")[-1],
        value,
        *value.split("=")[:1],
        *("learning rate",) * name.endswith("lr"),
    )
    large = any(one in value for one in LARGE)
    return Case(number, f"{name} {fault}", [*arguments, name, value], names, asks_much=large)


def _parameter(rng: random.Random, arguments: Sequence[str]) -> tuple[Any, str]:
    name, rest = command_of(arguments)
    command = typer.main.get_command(load_command(name).app)
    command = getattr(command, "commands", {}).get(rest[0], command)
    found = [one for one in command.params if one.opts[0].startswith("-")]
    one = rng.choice([*found, None] if found else [None])
    return one, one.opts[0] if one is not None else ""


def _choices(parameter: Any) -> list[str]:
    kinds = get_args(parameter.type_descriptor.annotation)
    return [str(one) for kind in kinds for one in (kind, *get_args(kind)) if isinstance(one, str)]


def _given(arguments: Sequence[str]) -> tuple[str, ...]:
    """Options and paths of a call: what a message about a combination may name."""
    paths = (one for one in arguments if isinstance(one, Input | InputFolder | Output))
    return (*(one for one in arguments if one.startswith("--")), *paths)


def _path(rng: random.Random, number: int, arguments: list[str], place: Path) -> Case:
    """A path that is not what it must be."""
    kinds = (Input, InputFolder, Output)
    at = rng.choice([n for n, one in enumerate(arguments) if isinstance(one, kinds)])
    fault, arguments[at] = _bad_path(rng, place, type(arguments[at]))
    option = [one for one in arguments[at - 1 : at] if one.startswith("--")]
    return Case(
        number,
        f"path {at} {fault}",
        arguments,
        (arguments[at], *option, *ALSO.get(fault.split(" for ")[0], ())),
    )


def _bad_path(rng: random.Random, place: Path, role: type) -> tuple[str, str]:
    path = place / "given"
    texts: dict[str, str] = {
        "missing": str(path),
        "no folder": str(path / "below"),
        "full": "/dev/full",
        "null": "/dev/null",
        "long": str(place / ("n" * 300)),
        "nul": str(path) + "\0",
        "not utf-8": str(place / "\udcff\udcfe"),
        "control": str(place / "\x1b[31mred\n"),
        "empty": "",
        "dash": "-",
        "root": "/",
        "proc": "/proc/self/mem",
        "deep": str(place / "/".join(["d"] * 3_000)),
    }
    made: dict[str, Callable[[], object]] = {
        "file": lambda: path.write_text("plain\n"),
        "empty file": lambda: path.write_bytes(b""),
        "binary": lambda: path.write_bytes(bytes(range(256)) * 20),
        "folder": lambda: path.mkdir(),
        "below a file": lambda: path.write_text("plain\n"),
        "loop": lambda: path.symlink_to(path),
        "broken link": lambda: path.symlink_to(place / "nowhere"),
        "fifo": lambda: os.mkfifo(path),
        "unreadable file": lambda: (path.write_text("x\n"), path.chmod(0)),
        "unreadable folder": lambda: path.mkdir(0),
        "in a read-only folder": lambda: path.mkdir(0o555),
    }
    kind = rng.choice([*texts, *made])
    if kind in texts:
        return f"{kind} for {role.__name__}", texts[kind]
    made[kind]()
    inside = kind.startswith(("below", "in a"))
    return f"{kind} for {role.__name__}", str(path / "x.csv" if inside else path)


def _folder(rng: random.Random, number: int, arguments: list[str], place: Path) -> Case:
    """A folder with one damaged file."""
    found = [n for n, one in enumerate(arguments) if isinstance(one, InputFolder)]
    at = rng.choice(found)
    copy = place / "folder"
    shutil.copytree(arguments[at], copy, ignore=shutil.ignore_patterns("checkpoints", "lock"))
    arguments[at] = InputFolder(copy)
    files = sorted(one for one in copy.rglob("*") if one.is_file())
    main = [one for one in files if MAIN_FILES.fullmatch(one.name)]
    file = rng.choice(main if main and rng.random() < 0.9 else files)
    damage = rng.choice([_changed_json] * 8 + [_damaged_bytes] * 3 + [_other_thing])
    if file.suffix != ".json" and damage is _changed_json:
        damage = _damaged_bytes
    fault = damage(rng, file)
    return Case(
        number, f"{file.relative_to(copy)}: {fault}", arguments, (str(copy), file.name, "text ")
    )


def _changed_json(rng: random.Random, file: Path) -> str:
    """One value of a JSON file replaced, removed, doubled or renamed."""
    tree = json.loads(file.read_text(encoding="utf-8"))
    value = rng.choice(VALUES)
    holder, key = _somewhere(rng, tree)
    if holder is None:
        file.write_text(_dumped(value), encoding="utf-8")
        return f"is {value!r:.40}"
    way = rng.choice(("set", "set", "set", "removed", "doubled", "added"))
    if way == "set":
        holder[key] = value
    elif way == "removed":
        del holder[key]
    elif way == "added" and isinstance(holder, dict):
        holder["added"] = value
    elif way == "added":
        holder.append(value)
    text = _dumped(tree)
    if way == "doubled" and isinstance(tree, dict):
        text = "{" + f"{json.dumps(next(iter(tree)))}: {_dumped(value)}, " + text[1:]
    file.write_text(text, encoding="utf-8")
    return f"{key} {way} {value!r:.40}"


def _dumped(value: object) -> str:
    return json.dumps(value, default=str)


def _somewhere(rng: random.Random, tree: Any) -> tuple[Any, Any]:
    """A place in a tree of JSON; often near its top."""
    holder, key = None, None
    while isinstance(tree, dict | list) and tree and (holder is None or rng.random() < 0.4):
        holder = tree
        key = rng.choice(list(tree)) if isinstance(tree, dict) else rng.randrange(len(tree))
        tree = tree[key]
    return holder, key


def _damaged_bytes(rng: random.Random, file: Path) -> str:
    data = file.read_bytes()
    middle = rng.randrange(len(data) + 1)
    ways = {
        "empty": b"",
        "truncated": data[:middle],
        "last byte lost": data[:-1],
        "doubled": data * 2,
        "zeros": bytes(len(data)),
        "not utf-8": data[:middle] + b"\xff\xfe\xff" + data[middle:],
        "nul": data[:middle] + b"\0" + data[middle:],
        "line doubled": data[:middle] + b"\n" + data[middle : middle + 30] + b"\n" + data[middle:],
        "random": rng.randbytes(200),
        "deep": b"[" * 100_000,
        "text": b"plain text\n",
    }
    way = rng.choice(list(ways))
    file.write_bytes(ways[way])
    return f"{way} at {middle}"


def _other_thing(rng: random.Random, file: Path) -> str:
    ways: dict[str, Callable[[], object]] = {
        "missing": lambda: None,
        "folder": lambda: file.mkdir(),
        "fifo": lambda: os.mkfifo(file),
        "unreadable": lambda: (file.write_text("{}"), file.chmod(0)),
        "link": lambda: file.symlink_to("/etc/passwd"),
        "broken link": lambda: file.symlink_to("nowhere"),
        "device": lambda: file.symlink_to("/dev/zero"),
    }
    way = rng.choice(list(ways))
    file.unlink()
    ways[way]()
    return way


def _surroundings(rng: random.Random, number: int, arguments: list[str], place: Path) -> Case:
    """A call that is right, in surroundings that are not."""
    out = str(place / "out")
    output = ("standard output", out)
    ways: dict[str, tuple[Surroundings, tuple[str, ...]]] = {
        "stdout closed": (Surroundings(stdout="closed"), output),
        "stdout full": (Surroundings(stdout="full"), output),
        "stdout broken": (Surroundings(stdout="broken"), ("",)),
        "stderr closed": (Surroundings(stderr="closed"), ("",)),
        "all closed": (Surroundings(stdin="closed", stdout="closed", stderr="closed"), ("",)),
        "stdin closed": (Surroundings(stdin="closed"), ("standard input", "stdin")),
        "stdin text": (Surroundings(stdin="text"), ()),
        "ascii": (Surroundings(encoding="ascii", environment={"LC_ALL": "C"}), ()),
        "no home": (Surroundings(environment={"HOME": None}), ()),
        "home is a file": (Surroundings(environment={"HOME": "/dev/null"}), ()),
        "no temporary folder": (Surroundings(environment={"TMPDIR": out + "/none"}), (out,)),
        "small files": (Surroundings(file_limit=rng.choice((0, 100, 5_000))), (out,)),
        "full disk": (Surroundings(mounts={out: f"size={rng.choice((4, 16, 64))}k"}), (out,)),
        "read-only disk": (Surroundings(mounts={out: "ro"}), (out,)),
        "read-only folder": (Surroundings(), (out,)),
    }
    way = rng.choice(list(ways))
    around, names = ways[way]
    if way == "read-only folder" or (way == "read-only disk" and os.geteuid() != 0):
        (place / "out").chmod(0o555)
    if around.mounts and os.geteuid() != 0:
        around = Surroundings(file_limit=5_000)
    if way.startswith("stdin"):
        arguments = [
            "-" if isinstance(one, Input) or one == "the bird" else one for one in arguments
        ]
        names = (*names, "-", "standard input", "stdin")
    return Case(number, way, arguments, names, around)
