"""The start and the end of the service: its port, a second signal, upgrades, models of an index."""

from __future__ import annotations

import http.client
import json
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import httpx
import pytest
from fresh_python import run_fresh
from page_models import TaskFolders
from service_process import ServiceProcess
from tiny_finetuning import tiny_folder, tiny_writer

from bertsmith.errors import BertsmithError, ConfigError, FolderError, without_passwords
from bertsmith.serve.service import ServiceSettings, model_of_index

JSON = {"content-type": "application/json"}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    place = tmp_path_factory.mktemp("ending")
    return f"tiny={tiny_folder(place / 'model')}", f"writer={tiny_writer(place / 'writer')}"


@pytest.fixture
def service(folders: tuple[str, str]) -> Iterator[ServiceProcess]:
    one = ServiceProcess(*folders)
    yield one
    one.close()


def test_a_second_signal_answers_503_to_everything_that_is_not_answered(
    service: ServiceProcess,
) -> None:
    """Bodies that have not arrived yet, and answers that are being computed."""
    statuses: list[int] = []
    head = b"POST /embed HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
    waiting = []
    for _ in range(6):
        one = socket.create_connection(("127.0.0.1", service.port), timeout=30)
        one.sendall(head + b"content-length: 50\r\n\r\n{")
        waiting.append(one)

    def ask() -> None:
        connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=30)
        body = json.dumps({"text": "the bird", "max_new": 8})
        connection.request("POST", "/generate", body, JSON)
        statuses.append(connection.getresponse().status)

    threads = [threading.Thread(target=ask) for _ in range(6)]
    for thread in threads:
        thread.start()
    time.sleep(0.3)
    service.process.send_signal(signal.SIGTERM)
    time.sleep(0.2)
    start = time.monotonic()
    service.process.send_signal(signal.SIGTERM)
    for one in waiting:
        found = b""
        while part := one.recv(4_096):
            found += part
        assert found.startswith(b"HTTP/1.1 503")
        assert b"ended before this request was answered" in found
        one.close()
    code = service.process.wait(30)
    assert time.monotonic() - start < 5.0
    for thread in threads:
        thread.join(30)
    assert len(statuses) == 6
    assert set(statuses) <= {200, 503}
    assert code == 0
    assert "Traceback" not in service.stderr


def test_an_upgrade_is_answered_as_any_request_and_says_nothing(service: ServiceProcess) -> None:
    for name in (b"websocket", b"h2c"):
        with socket.create_connection(("127.0.0.1", service.port), timeout=20) as connection:
            connection.sendall(
                b"GET /health/live HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\n"
                b"upgrade: %s\r\nsec-websocket-key: x\r\nsec-websocket-version: 13\r\n\r\n"
                b"GET /health/live HTTP/1.1\r\nhost: localhost\r\n\r\n" % name
            )
            answer = b""
            while part := connection.recv(1 << 16):
                answer += part
        assert answer.count(b"HTTP/1.1 200") == 1
        assert b"connection: close" in answer
    assert service.end() == 0
    assert "pip" not in service.stderr
    assert "upgrade" not in service.stderr.lower()


def test_of_two_services_on_one_port_the_second_ends_before_it_loads_a_model(
    service: ServiceProcess, folders: tuple[str, str]
) -> None:
    port = service.port
    command = [sys.executable, "-m", "bertsmith", "serve", folders[0], "--port", str(port)]
    found = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert found.returncode == 2
    assert f"cannot listen on port {port}" in found.stderr
    assert "--port" in found.stderr
    assert httpx.get(f"{service.url}/health/live").status_code == 200


def test_two_services_that_start_together_never_share_a_port(folders: tuple[str, str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    command = [sys.executable, "-m", "bertsmith", "serve", folders[0], "--port", str(port)]
    both = [
        subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    try:
        end = time.monotonic() + 120
        while all(one.poll() is None for one in both) and time.monotonic() < end:
            time.sleep(0.05)
        (loser,) = [one for one in both if one.poll() is not None]
        (winner,) = [one for one in both if one.poll() is None]
        assert loser.returncode == 2
        assert "cannot listen on port" in loser.communicate()[1]
        # While its models are loaded it listens, and says so.
        early = httpx.get(f"http://127.0.0.1:{port}/models", timeout=60)
        assert early.status_code in (200, 503)
        assert early.status_code == 200 or early.headers["retry-after"] == "1"
        winner.terminate()
        _, said = winner.communicate(timeout=60)
        assert winner.returncode == 0, said
    finally:
        for one in both:
            one.kill()
            one.wait()


def test_the_front_has_no_torch_in_its_memory() -> None:
    loaded = run_fresh("import sys, bertsmith.serve.server; print(*sys.modules)").split()
    assert "bertsmith.serve.app" in loaded
    assert not {"torch", "scipy", "sklearn"} & set(loaded)


def test_an_index_finds_its_model_wherever_it_is_named(task_folders: TaskFolders) -> None:
    models = task_folders.models
    order = [name for name in models if name != "masked"]
    for names in (["masked", *order], [*order, "masked"], [order[0], "masked", *order[1:]]):
        settings = ServiceSettings(
            models={name: models[name] for name in names}, index=task_folders.index
        )
        assert model_of_index(settings) == "masked"
    others = {name: models[name] for name in order[:2]}
    with pytest.raises(ConfigError, match="none of the served models"):
        model_of_index(ServiceSettings(models=others, index=task_folders.index))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("no folder at POSTGRESQL://u:pw@host/db", "no folder at POSTGRESQL://u:***@host/db"),
        ("postgresql:/u:pw@host", "postgresql:/u:***@host"),
        ("'redis://:pw@host:1/0' is", "'redis://:***@host:1/0' is"),
        ("http://u:p@w@host and http://host:80", "http://u:***@host and http://host:80"),
        ("x://a?password=pw&b=c", "x://a?password=***&b=c"),
        ("a:b@c and http://host:80/x", "a:b@c and http://host:80/x"),
    ],
)
def test_no_message_has_the_password_of_an_address(text: str, shown: str) -> None:
    assert without_passwords(text) == shown
    assert str(BertsmithError(text)) == shown
    assert str(FolderError(text)) == shown


def test_a_command_hides_the_password_of_an_address_of_any_scheme() -> None:
    for scheme in ("POSTGRESQL", "mysql", "http"):
        place = f"{scheme}://u:thesecret@localhost:1/db?table=t"
        for arguments in (["info", place], ["index", "info", place], ["serve", place]):
            found = subprocess.run(
                [sys.executable, "-m", "bertsmith", *arguments],
                capture_output=True,
                text=True,
                timeout=120,
                check=False,
            )
            assert found.returncode != 0
            assert "thesecret" not in found.stdout + found.stderr, (arguments, found.stderr)
