"""`bertsmith doctor`: which fast paths work on this machine, how fast, and which are used."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from bertsmith.cli.shared.console import printable, rich_console, write_json, write_lines
from bertsmith.cli.shared.options import Json
from bertsmith.cli.shared.options_of import spread
from bertsmith.setting import COMPUTE, Setting

if TYPE_CHECKING:
    from rich.table import Table

    from bertsmith.folders.describe import Description
    from bertsmith.hardware.choice import PathChoice
    from bertsmith.hardware.findings import Finding
    from bertsmith.hardware.probes import Probe
    from bertsmith.hardware.report import MachineReport

# Anything else is yellow or red.
_COLORS = {"works": "green", "absent": "dim", "not offered": "dim", "skipped": "dim"}
_WIDTH = 100  # of the table when the output is not a terminal
_WORDS = {
    "eager-fp32": "plain fp32",
    "fp32": "plain fp32",
    "onednn-fp32": "oneDNN fp32 matmuls",
    "mkl-bf16": "MKL bf16 matmuls",
    "torch-bf16": "torch bf16 matmuls",
}


@spread
def doctor(
    model: Annotated[
        str | None,
        typer.Argument(
            metavar="MODEL",
            help="Model folder or name: also report what other programs would read differently.",
        ),
    ] = None,
    as_json: Json = False,
    fresh: Annotated[bool, Setting("Ignore the cache and measure again.", COMPUTE)] = False,
    quick: Annotated[bool, Setting("Skip probes that compile code.", COMPUTE)] = False,
    limit: Annotated[
        float,
        Setting(
            "Seconds for all probes together; the next call runs those that did not finish.",
            COMPUTE,
            min=1.0,
        ),
    ] = 60.0,
) -> None:
    """Test the fast paths of this machine, each in a child process, and show which are used.

    Examples:

        bertsmith doctor

        bertsmith doctor my-model --quick
    """
    from bertsmith.folders.describe import describe
    from bertsmith.hardware.choice import TRAINING, choose_path
    from bertsmith.hardware.report import examine
    from bertsmith.runtime.engines.kinds import engine_paths

    about = None if model is None else describe(model, check=True)
    progress = _ProbeLines()
    with progress:
        report = examine(
            fresh=fresh, quick=quick, budget=limit, progress=progress, probes=all_probes()
        )
    inference, training = choose_path(report, engine_paths()), choose_path(report, TRAINING)
    if as_json:
        content = report.to_json()
        content["choices"] = {"inference": _plain(inference), "training": _plain(training)}
        if about is not None:
            content["model"] = {"path": about.path, "problems": [*about.problems, *about.changed]}
        write_json(content)
        return
    _print(report, inference, training, measured=progress.ran > 0)
    if about is not None:
        write_lines(_model_lines(about))


def all_probes() -> dict[str, Probe]:
    """Every probe there is: products of torch, engines of encoders, kernels of word vectors."""
    from bertsmith.classic.word2vec.engines import WORD_PROBES
    from bertsmith.hardware.probes import PROBES
    from bertsmith.runtime.engines.kinds import engine_probes

    return {**PROBES, **engine_probes(), **WORD_PROBES}


class _ProbeLines:
    """One line on stderr for each probe that runs: live on a terminal, plain elsewhere."""

    def __init__(self) -> None:
        self.ran = 0
        self._console = rich_console(stderr=True)
        self._status = self._console.status("Examining this machine")
        self._running = ""

    def __enter__(self) -> None:
        if self._console.is_terminal:
            self._status.start()

    def __exit__(self, *_: object) -> None:
        self._status.stop()

    def __call__(self, name: str, finding: Finding | None) -> None:
        if finding is None:
            self._running = name
            self.ran += 1
            self._status.update(f"{name}: {all_probes()[name].about}")
        elif name == self._running:
            self._console.print(f"{name}: {finding.status}, {finding.seconds:.1f} s", style="dim")


def _print(
    report: MachineReport, inference: PathChoice, training: PathChoice, *, measured: bool
) -> None:
    from bertsmith.hardware.findings import UNFINISHED

    width = None if sys.stdout.isatty() else _WIDTH
    console = rich_console(soft_wrap=True, width=width)
    for title, text in _description(report):
        console.print(f"{title:<11}{text}")
    console.print()
    console.print(_table(report, inference, training))
    console.print()
    for remark in _remarks(report, inference):
        console.print(f"  {remark}", style="dim")
    if measured and report.load > report.machine.processors / 2:
        console.print(
            f"Other programs were running (load {report.load:.1f}), so the rates are low. "
            "The ratios are less affected: fp32 ran in turn with each path."
        )
    if any(finding.status == UNFINISHED for finding in report.findings):
        console.print(
            "Some probes did not finish in time; `bertsmith doctor` runs only those again, "
            "`--limit 300` gives them more time."
        )
    dates = sorted(finding.date for finding in report.findings if finding.date)
    if dates:
        console.print(f"Measured {dates[0][:10]}; `bertsmith doctor --fresh` measures again.")
    console.print(_sentence(inference, training), style="bold")


def _description(report: MachineReport) -> list[tuple[str, str]]:
    machine = report.machine
    settings = [
        ("Setting", f"{name}={value}, also set for the probes")
        for name, value in machine.variables.items()
    ]
    return [
        ("Processor", f"{machine.cpu}, {machine.architecture}"),
        ("Cores", f"{machine.threads} used of {machine.processors} available"),
        ("Memory", f"{machine.memory / 2**30:.1f} GiB" if machine.memory else "unknown"),
        ("System", f"{machine.kernel}, torch {machine.torch}"),
        ("Compiler", report.compiler.version if report.compiler else "none"),
        *settings,
    ]


def _table(report: MachineReport, inference: PathChoice, training: PathChoice) -> Table:
    from rich.table import Table
    from rich.text import Text

    probes = all_probes()
    table = Table(show_edge=False, pad_edge=False, header_style="bold")
    for title in ("Path", "What it is", "Result"):
        table.add_column(title, overflow="fold", no_wrap=False)
    for title in ("GFLOP/s", "x fp32", "Error"):
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("Best for")
    uses = (("encoding", inference), ("training", training))
    for finding in report.findings:
        speedup = finding.speedup
        rate = finding.best_gflops
        bad = "red" if finding.status.startswith(("crashed", "wrong")) else "yellow"
        table.add_row(
            finding.name,
            probes[finding.name].about,
            Text(finding.status, style=_COLORS.get(finding.status, bad)),
            "" if rate is None else f"{rate:.0f}",
            "" if speedup is None or finding.name == "threads" else f"{speedup:.2f}",
            "" if finding.error is None else f"{finding.error:.1e}",
            ", ".join(use for use, choice in uses if choice.probe == finding.name),
        )
    return table


def _remarks(report: MachineReport, inference: PathChoice) -> Iterator[str]:
    """Remarks below the table: why a path is missing, or fast and still not used."""
    for finding in report.findings:
        parts = [finding.detail] if finding.detail else []
        if finding.works and (finding.speedup or 0.0) > 1.0 and finding.name in inference.refused:
            parts.append(f"not for encoding: {inference.refused[finding.name]}")
        if parts:
            yield f"{finding.name}: {'; '.join(parts)}"


def _sentence(inference: PathChoice, training: PathChoice) -> str:
    """The result in one sentence."""
    return f"Encoding will use {_use(inference)}; for training, {_use(training)}."


def _model_lines(about: Description) -> list[str]:
    """What is wrong with a model folder."""
    path = printable(about.path, keep="")
    found = [f"{path}: {printable(one)}" for one in (*about.problems, *about.changed)]
    return found or [f"{path}: no problems"]


def _use(choice: PathChoice) -> str:
    from bertsmith.runtime.engines.kinds import ENGINE_KINDS

    kind = ENGINE_KINDS.get(choice.path)
    words = _WORDS.get(choice.path, choice.path)
    if kind is not None:
        words = f"{kind.name} ({kind.probe.about})"
    if choice.probe == "fp32_gemm":
        return f"{words}, which is exact everywhere"
    return f"{words}, about {choice.speedup:.1f} x plain fp32"


def _plain(choice: PathChoice) -> dict[str, object]:
    return {**asdict(choice), "refused": dict(choice.refused)}
