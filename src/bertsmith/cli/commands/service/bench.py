"""`bertsmith serve bench`: a running service under load."""

from __future__ import annotations

import os
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bertsmith.cli.shared.console import write_json, write_lines
from bertsmith.cli.shared.options import Json
from bertsmith.cli.shared.options_of import spread
from bertsmith.errors import InputFileError
from bertsmith.setting import DATA, SERVING, Setting

if TYPE_CHECKING:
    from bertsmith.serve.clients.load import LoadReport

KEY_VARIABLE = "BERTSMITH_KEY"
MOST_TEXTS = 100_000

Url = Annotated[str, typer.Argument(metavar="URL", help="Address, http://127.0.0.1:8080 say.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadOptions:
    """How much is sent, and how."""

    clients: Annotated[int, Setting("Clients of the closed loop.", SERVING, min=1, max=1_000)] = 8
    arrival_rate: Annotated[
        float | None,
        Setting("Requests per second at random times: the open loop.", SERVING, min=0.01),
    ] = None
    seconds: Annotated[float, Setting("Time of sending.", SERVING, min=0.1, max=3_600)] = 10.0
    requests: Annotated[int, Setting("Most requests to send.", SERVING, min=1)] = 1_000_000
    texts: Annotated[int, Setting("Texts per request.", DATA, min=1, max=2_048)] = 1
    text_file: Annotated[
        Path | None,
        Setting("File of texts: one per line, to send; a few of mixed lengths if unset.", DATA),
    ] = None
    allow_remote: Annotated[bool, Setting("Also load another machine than this one.", SERVING)] = (
        False
    )
    as_json: Json = False


@spread
def bench(url: Url, load: LoadOptions) -> None:
    """Send requests for vectors to a service, and print how they were answered.

    A key is taken from the variable BERTSMITH_KEY. On one machine the generator competes with the
    service: its own share of a core is printed.

    Examples:

        bertsmith serve bench http://127.0.0.1:8080 --clients 64 --seconds 60

        bertsmith serve bench http://127.0.0.1:8080 --arrival-rate 200
    """
    from bertsmith.serve.clients.load import TEXTS, LoadPlan, generate_load

    plan = LoadPlan(
        url=url,
        key=os.environ.get(KEY_VARIABLE),
        clients=load.clients,
        rate=load.arrival_rate,
        seconds=load.seconds,
        requests=load.requests,
        texts_per_request=load.texts,
        texts=TEXTS if load.text_file is None else _texts(load.text_file),
        allow_remote=load.allow_remote,
    )
    report = generate_load(plan)
    if load.as_json:
        write_json(report.to_json())
    else:
        write_lines(_lines(report))


def _texts(path: Path) -> list[str]:
    from bertsmith.files.lines import text_lines

    texts = list(islice((line for line in text_lines(path) if line.strip()), MOST_TEXTS))
    if not texts:
        raise InputFileError(f"{path} has no text: one per line is needed")
    return texts


def _lines(report: LoadReport) -> list[str]:
    found = report.to_json()
    spent = ", ".join(f"{name} {value:g}" for name, value in found["latency_ms"].items())
    refused = ", ".join(f"{name} {value:g}" for name, value in found["refusal_ms"].items())
    plan = report.plan
    loop = f"{plan.clients} clients" if plan.rate is None else f"{plan.rate:g} requests per second"
    statuses = ", ".join(f"{status}: {number:,}" for status, number in found["statuses"].items())
    return [
        f"{loop}, {plan.texts_per_request} texts per request, {found['seconds']:g} s",
        f"throughput  {found['requests_per_second']:g} requests per second, "
        f"{found['texts_per_second']:g} texts per second",
        f"latency     {spent or 'no answer'} (ms)",
        *([f"refusals    {refused} (ms)"] if refused else []),
        f"statuses    {statuses}",
        f"generator   {100 * found['own_cpu_share']:.0f} % of a core",
    ]
