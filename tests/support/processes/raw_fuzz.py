"""A fuzzer of HTTP services over raw sockets: request line, headers, framing and body."""

from __future__ import annotations

import json
import random
import re
import socket
import time
from dataclasses import dataclass

STATUS = re.compile(rb"HTTP/1\.[01] (\d{3})[ \r]")
PATHS = (b"/embed", b"/v1/embeddings", b"/rerank", b"/similarity", b"/tokenize", b"/decode")
HANG = 20.0
JSON = b"content-type: application/json\r\n"


@dataclass(frozen=True)
class Case:
    """Bytes to send; `half` closes our side afterwards, `parts` sends them in that many pieces."""

    name: str
    data: bytes
    half: bool = True
    parts: int = 1


def cases(seed: int, count: int, key: str | None):
    """That many cases, drawn with a seed."""
    draw = random.Random(seed)
    kinds = (_request_line, _header, _framing, _chunks, _body, _values, _noise, _short, _pipelined)
    for number in range(count):
        kind = kinds[number % len(kinds)]
        yield kind(draw, f"authorization: Bearer {key}\r\n".encode() if key else b"")


def verdict(port: int, case: Case) -> str | None:
    """What is wrong with the answer to a case, None if nothing is."""
    start = time.monotonic()
    answer = b""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=HANG) as connection:
            size = max(1, -(-len(case.data) // case.parts))
            try:
                for at in range(0, len(case.data), size):
                    connection.sendall(case.data[at : at + size])
                if case.half:
                    connection.shutdown(socket.SHUT_WR)
            except OSError:
                pass  # it was refused before all was sent: the answer may still be there
            while part := connection.recv(1 << 16):
                answer += part
                if time.monotonic() - start > HANG:
                    return "hangs"
    except TimeoutError:
        return "hangs"
    except ConnectionResetError:
        pass
    except OSError as error:
        return f"no connection: {error}"
    if answer and not STATUS.match(answer):
        return f"no HTTP: {answer[:60]!r}"
    statuses = [int(one) for one in STATUS.findall(answer)]
    wrong = [status for status in statuses if status >= 500 and status != 503]
    if wrong:
        return f"status {wrong[0]}"
    if b"Traceback" in answer or b".py" in answer:
        return "an answer with a traceback"
    return None


def post(path: bytes, auth: bytes, body: bytes, extra: bytes = b"", host: bytes = b"a") -> bytes:
    """A request that is well formed but for its body."""
    length = b"content-length: %d\r\n" % len(body)
    kind = b"content-type: application/json\r\nconnection: close\r\n"
    return b"POST %s HTTP/1.1\r\nhost: %s\r\n%s%s%s%s\r\n%s" % (
        path,
        host,
        auth,
        kind,
        extra,
        length,
        body,
    )


GOOD = b'{"inputs": "the bird"}'


def _request_line(draw: random.Random, auth: bytes) -> Case:
    method = draw.choice(
        [b"GET", b"POST", b"PUT", b"OPTIONS", b"HEAD", b"get", b"\x00", b"P" * 9999]
    )
    paths = [
        b"/",
        b"*",
        b"//embed",
        b"/%00",
        b"/../../etc/passwd",
        b"/%ff%fe",
        b"/embed?" + b"a" * 3000,
    ]
    path = draw.choice(
        [*paths, *PATHS, b"http://other/embed", b"/models/x/embed", b"/v1/models/%0a"]
    )
    version = draw.choice([b"HTTP/1.1", b"HTTP/1.0", b"HTTP/9.9", b"HTTP/2.0", b"", b"FTP/1.1"])
    end = draw.choice([b"\r\n", b"\n", b"\r", b"\r\r\n"])
    line = b" ".join([method, path, version]) + end
    return Case("request line", line + b"host: a\r\nconnection: close\r\n" + auth + b"\r\n")


def _header(draw: random.Random, auth: bytes) -> Case:
    odd = draw.choice(
        [
            b"a: " + b"b" * draw.choice([100, 20_000, 70_000]) + b"\r\n",
            b"".join(b"x-%d: y\r\n" % n for n in range(draw.choice([10, 70, 300]))),
            b"no colon here\r\n",
            b": no name\r\n",
            b"x y: z\r\n",
            b" folded\r\n",
            b"x: \x00\r\n",
            b"x: \xff\xfe\r\n",
            b"x-request-id: \x1b[31m\r\n",
            b"x-timeout: nan\r\n",
            b"x-timeout: -1\r\n",
            b"x-timeout: 1e-9\r\n",
            b"content-type: text/plain\r\n",
            b"expect: 100-continue\r\n",
            b"upgrade: websocket\r\nconnection: upgrade\r\n",
            b"upgrade: h2c\r\nconnection: upgrade, http2-settings\r\n",
            b"authorization: Bearer\r\n",
        ]
    )
    return Case("header", post(draw.choice(PATHS), auth, GOOD, odd), parts=draw.choice([1, 3]))


def _framing(draw: random.Random, auth: bytes) -> Case:
    odd = draw.choice(
        [
            b"content-length: 99999999999999999999\r\n",
            b"content-length: -1\r\n",
            b"content-length: +5\r\n",
            b"content-length: 0x10\r\n",
            b"content-length: 5\r\ncontent-length: 6\r\n",
            b"content-length: 5, 5\r\n",
            b"content-length: 5\r\ntransfer-encoding: chunked\r\n",
            b"transfer-encoding: gzip, chunked\r\n",
            b"transfer-encoding: nonsense\r\n",
            b"transfer-encoding: chunked\r\ntransfer-encoding: identity\r\n",
        ]
    )
    head = b"POST /embed HTTP/1.1\r\nhost: a\r\nconnection: close\r\n" + JSON + auth + odd
    return Case("framing", head + b"\r\n" + GOOD, half=True)


def _chunks(draw: random.Random, auth: bytes) -> Case:
    head = b"POST /embed HTTP/1.1\r\nhost: a\r\nconnection: close\r\ntransfer-encoding: chunked\r\n"
    head += JSON
    single = b"".join(b"1\r\n%c\r\n" % byte for byte in GOOD) + b"0\r\n\r\n"
    odd = draw.choice(
        [
            single,
            b"ffffffffffffffffff\r\nx",
            b"-1\r\nx\r\n0\r\n\r\n",
            b"zz\r\nx\r\n0\r\n\r\n",
            b"5;ext=" + b"e" * 20_000 + b"\r\nhello\r\n0\r\n\r\n",
            b"2\r\nhello\r\n0\r\n\r\n",
            b"5\r\nhello",
            b"0\r\n" + b"trailer: x\r\n" * 500 + b"\r\n",
            b"100000\r\n" + b"x" * 0x100000 + b"\r\n" + b"100000\r\n" + b"x" * 0x100000 + b"\r\n",
        ]
    )
    return Case("chunks", head + auth + b"\r\n" + odd)


def _body(draw: random.Random, auth: bytes) -> Case:
    body = draw.choice(
        [
            b"",
            b"null",
            b"[]",
            b'"a"',
            b"{",
            b"[" * 100_000,
            b'{"inputs": ' + b"[" * 5_000 + b"]" * 5_000 + b"}",
            b'{"inputs": NaN}',
            b'{"inputs": 1e400}',
            b'{"inputs": ' + b"9" * 5_000 + b"}",
            b'{"inputs": "\xff\xfe"}',
            b'{"inputs": "\\ud800"}',
            GOOD.decode().encode("utf-16"),
            b'{"inputs": "a", "inputs": 5}',
            b"\xef\xbb\xbf" + GOOD,
            b"\x00" * 1_000,
            b'{"inputs": "' + b"a" * 3_000_000 + b'"}',
        ]
    )
    return Case("body", post(draw.choice(PATHS), auth, body))


def _values(draw: random.Random, auth: bytes) -> Case:
    odd = draw.choice(
        [
            "",
            " ",
            "\x00",
            "\u202e\ufeff",
            "a" * 100_000,
            "\U0001f600" * 500,
            "\n" * 1_000,
            ["a"] * 100_000,
            [[1, -1]],
            [[2**63]],
            [[10**30]],
            [[]],
            {"a": 1},
            -1,
            1.5,
            True,
            None,
            ["[MASK]" * 300],
            [["a", "b", "c"]],
        ]
    )
    fields = ("inputs", "input", "query", "texts", "ids", "text", "model", "k", "top", "dimensions")
    value: dict[str, object] = {"inputs": "a"}
    for name in draw.sample(fields, draw.randint(1, 3)):
        value[name] = odd
    return Case("values", post(draw.choice(PATHS), auth, json.dumps(value).encode()))


def _noise(draw: random.Random, auth: bytes) -> Case:
    return Case("noise", draw.randbytes(draw.choice([1, 20, 2_000, 40_000])))


def _short(draw: random.Random, auth: bytes) -> Case:
    whole = post(draw.choice(PATHS), auth, GOOD)
    return Case("short", whole[: draw.randrange(1, len(whole))])


def _pipelined(draw: random.Random, auth: bytes) -> Case:
    one = post(b"/embed", auth, GOOD).replace(b"connection: close\r\n", b"")
    last = draw.choice([post(b"/embed", auth, GOOD), b"\r\n" * 50, b"GARBAGE\r\n\r\n"])
    return Case("pipelined", one * draw.randint(1, 20) + last)
