"""`bertsmith serve`: model folders behind HTTP."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bertsmith.cli.shared.console import note, write_lines
from bertsmith.cli.shared.options import Precision, Quiet, Threads
from bertsmith.cli.shared.options_of import spread
from bertsmith.errors import ConfigError, MissingExtraError
from bertsmith.setting import LIMITS, MODEL, SERVING, Setting

if TYPE_CHECKING:
    from bertsmith.serve.http.keys import Keys
    from bertsmith.serve.service import ServiceSettings

KEY_VARIABLE = "BERTSMITH_SERVE_KEY"
Folders = Annotated[
    list[str],
    typer.Argument(
        metavar="MODEL...",
        help="Model folders or names, each also as NAME=FOLDER. The first one answers requests "
        "that name no model.",
    ),
]
IndexOption = Annotated[
    Path | None, Setting("Index to search, of one of the models.", MODEL, metavar="INDEX")
]
Host = Annotated[str, Setting("Address to listen on.", SERVING)]
Port = Annotated[int, Setting("Port to listen on; 0: a free one.", SERVING, min=0, max=65_535)]
KeyFile = Annotated[
    Path | None,
    Setting(
        "File of API keys, one per line; or the variable BERTSMITH_SERVE_KEY.",
        SERVING,
        metavar="FILE",
    ),
]
AllowHost = Annotated[
    list[str] | None,
    Setting(
        "Name that requests may call the service by, as a proxy passes it on; may be repeated.",
        SERVING,
        metavar="NAME",
    ),
]
Insecure = Annotated[bool, Setting("Listen on a public address without a key.", SERVING)]
Strict = Annotated[bool, Setting("Refuse texts that are too long; else truncate them.", SERVING)]
Check = Annotated[bool, Setting("Print what would be served, and end.", SERVING)]
AccessLogOption = Annotated[
    bool, Setting("A line of JSON per request on standard output.", SERVING)
]


def _limit(name: str, help: str) -> Any:
    return Setting(help, LIMITS, flag=f"--{name}", min=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitOptions:
    """The limits of the service."""

    body_bytes: Annotated[int, _limit("body-bytes", "Bytes of a request's body.")] = 2_000_000
    total_bytes: Annotated[
        int, _limit("total-bytes", "Bytes of the bodies of all requests at work.")
    ] = 128_000_000
    header_bytes: Annotated[int, _limit("header-bytes", "Bytes of its headers.")] = 16_384
    header_fields: Annotated[int, _limit("header-fields", "Number of its headers.")] = 64
    head_seconds: Annotated[float, _limit("head-seconds", "Time to receive the headers.")] = 10.0
    body_seconds: Annotated[float, _limit("body-seconds", "Time to receive the body.")] = 10.0
    texts: Annotated[int, _limit("texts", "Texts per request.")] = 32
    openai_texts: Annotated[int, _limit("openai-texts", "Texts per request of OpenAI's form.")] = (
        2_048
    )
    text_tokens: Annotated[
        int | None, _limit("text-tokens", "Tokens per text; those of the model if unset.")
    ] = None
    document_tokens: Annotated[
        int, _limit("document-tokens", "Tokens of a text that is read in windows (tags, answers).")
    ] = 4_096
    json_depth: Annotated[int, _limit("json-depth", "Levels of nested JSON.")] = 32
    batch_tokens: Annotated[int, _limit("batch-tokens", "Tokens per batch.")] = 2_048
    queue_tokens: Annotated[
        int | None,
        _limit(
            "queue-tokens", "Tokens that may wait; 60 % of a deadline's worth of work if unset."
        ),
    ] = None
    connections: Annotated[int, _limit("connections", "Open connections.")] = 1_024
    deadline: Annotated[float, _limit("deadline", "Seconds until a request is answered.")] = 30.0
    drain: Annotated[float, _limit("drain", "Seconds to finish after SIGTERM.")] = 30.0
    keep_alive: Annotated[float, _limit("keep-alive", "Seconds of an idle connection.")] = 75.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingOptions:
    """Where to listen, and to whom."""

    host: Host = "127.0.0.1"
    port: Port = 8080
    keys: KeyFile = None
    allow_host: AllowHost = None
    insecure: Insecure = False
    strict: Strict = False
    check: Check = False
    log: AccessLogOption = True


@spread
def serve(
    folders: Folders,
    limit: LimitOptions,
    serving: ServingOptions,
    index: IndexOption = None,
    precision: Precision = "auto",
    threads: Threads = None,
    quiet: Quiet = False,
) -> None:
    """Serve models over HTTP: vectors, classes, tags, answers, masks, search, and a page.

    Routes of OpenAI, text-embeddings-inference, infinity and bert-as-service work as their clients
    expect; /openapi.json lists all of them. Every option is also an environment variable,
    BERTSMITH_SERVE_PORT for instance. SIGTERM finishes what was accepted; SIGTERM again ends at
    once. `bertsmith serve bench URL` measures a running service; a folder of the name bench is
    ./bench.

    Examples:

        bertsmith serve all-MiniLM-L6-v2

        bertsmith serve vectors=all-MiniLM-L6-v2 sentiment=./my-classifier --keys keys.txt
    """
    try:
        from bertsmith.serve.server import bound_socket, check_address, run
    except ModuleNotFoundError as error:
        raise MissingExtraError(error.name or "uvicorn", "serve") from error
    from bertsmith.config import validated
    from bertsmith.serve.access_log import AccessLog
    from bertsmith.serve.http.visitors import Visitors
    from bertsmith.serve.limits import Limits
    from bertsmith.serve.service import Service, ServiceSettings

    limits = validated(Limits, asdict(limit), "the limits")
    keys = _keys(serving.keys)
    check_address(serving.host, has_keys=bool(keys), insecure=serving.insecure)
    settings = ServiceSettings(
        models=named_folders(folders),
        index=index,
        precision=precision,
        threads=threads,
        strict=serving.strict,
        limits=limits,
        keys=keys,
        visitors=Visitors.at(serving.host, has_keys=bool(keys), allowed=serving.allow_host or ()),
    )
    if serving.check:
        write_lines([f"http://{serving.host}:{serving.port}, {_access(keys)}", *_plan(settings)])
        return
    bound = bound_socket(serving.host, serving.port)
    log = AccessLog(sys.stdout.fileno() if serving.log else None, warn=_warned)
    service = Service(settings, access_log=log)
    if not quiet:
        for line in _limits(settings):
            note(line)
    run(service, bound, notice=lambda message: note(message, quiet=quiet))


def named_folders(given: Sequence[str]) -> dict[str, Path]:
    """Names and folders of `NAME=FOLDER`, `FOLDER` or a model's name."""
    from bertsmith.folders.kinds import need
    from bertsmith.folders.opened import OpenFolder
    from bertsmith.folders.resolve import resolve
    from bertsmith.serve.http.addresses import MODEL_NAME

    found: dict[str, Path] = {}
    for one in given:
        name, equals, folder = one.partition("=")
        if not equals:
            name, folder = Path(one).resolve().name if Path(one).exists() else Path(one).name, one
        if not MODEL_NAME.fullmatch(name):
            raise ConfigError(
                f"{name!r:.60} is no name for a model in an address: give one of letters, digits, "
                ". _ - as NAME=FOLDER"
            )
        if name in found:
            raise ConfigError(f"two models are called {name}: give them names, NAME=FOLDER")
        found[name] = Path(resolve(folder))
        need(OpenFolder.at(found[name]), "embed")
    return found


def _keys(path: Path | None) -> Keys:
    from bertsmith.serve.http.keys import Keys

    if path is not None:
        return Keys.from_file(path)
    given = os.environ.get(KEY_VARIABLE)
    return Keys((given,) if given else (), source=KEY_VARIABLE)


def _access(keys: Keys) -> str:
    return "with a key" if keys else "without a key"


def _plan(settings: ServiceSettings) -> list[str]:
    """The models and the limits, a line each."""
    from bertsmith.folders.describe import describe
    from bertsmith.serve.service import model_of_index

    lines = [
        f"model {name}: {describe(folder).variant}, {folder}"
        for name, folder in settings.models.items()
    ]
    if settings.index is not None:
        lines.append(f"index of {model_of_index(settings)}: {settings.index}")
    return [*lines, *_limits(settings)]


def _limits(settings: ServiceSettings) -> list[str]:
    """The limits, and what happens to texts beyond them."""
    long = "refused (413)" if settings.strict else "truncated, counted in x-cut-tokens"
    return [f"texts that are too long: {long}", *settings.limits.lines()]


def _warned(message: str) -> None:
    """A remark, where somebody reads it: the disk of the log may be that of the remarks, too."""
    with contextlib.suppress(OSError):
        note(message)
