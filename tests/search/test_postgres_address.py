"""Addresses of indexes in a database: what is refused, what is shown, what is never shown."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest
from command_line import run
from postgres_server import PostgresServer
from toy_index import plan, source_of, texts

import bertsmith
from bertsmith.errors import BertsmithError, ConfigError, DatabaseError, MissingExtraError
from bertsmith.search import index as places
from bertsmith.search.index import new_store, open_store, place_name
from bertsmith.search.postgres import session
from bertsmith.search.postgres.address import Address

SECRET = "pass-w0rd"


def test_what_an_address_says() -> None:
    text = f"postgresql://me:{SECRET}@db1:5433,db2/texts?sslmode=require&table=notes&wait=5"
    address = Address.parse(text)
    assert (address.table, address.wait) == ("notes", 5)
    assert address.conninfo == f"postgresql://me:{SECRET}@db1:5433,db2/texts?sslmode=require"
    assert address.shown == "postgresql://me@db1:5433,db2/texts?table=notes" == place_name(text)
    assert SECRET not in repr(address)
    assert place_name(Path("folder")) == "folder"


@pytest.mark.parametrize(
    "name",
    [
        *("Notes", "1notes", "no tes", "a;b", 'a"b', "a'b", "a-b", "notizen_ä", "笔记", "x" * 49),
        *("pg_class", "bertsmith_indexes", "public.notes", "a%00b", "--", "*"),
    ],
)
def test_names_that_are_not_identifiers_are_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="cannot be the name of a table: use a to z"):
        Address.parse(f"postgresql://h/d?table={name}")


@pytest.mark.parametrize(
    "text",
    [
        f"postgresql://me:{SECRET}#x@h/d?table=t",
        f"postgresql://me:{SECRET}/x@h/d?table=t",
        f"postgresql://me:{SECRET}?x@h/d?table=t",
        f"postgresql://me:{SECRET}@h:port/d?table=t",
        f"postgresql://me:{SECRET} x/d?table=t",
        f"postgresql:/me:{SECRET}@h/d?table=t",
        f"postgresql://me:{SECRET}@h/d",
        f"postgresql://me:{SECRET}@h/d?table=t&wait={SECRET[:0]}soon",
        f"postgresql://me:{SECRET}@h/d?table=t&no_such_parameter=1&wait=0",
        f"postgresql://me:{SECRET}@127.0.0.1:1/d?table=t&wait=0",
        f"postgresql://127.0.0.1:1/d?table=t&wait=0&user=me&password={SECRET}",
    ],
)
def test_a_password_is_in_no_message(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(BertsmithError) as told:
        open_store(text)
    assert SECRET not in str(told.value)
    (tmp_path / "x.txt").write_text("x\n")
    commands = (
        ("search", text, "question"),
        ("index", "check", text),
        ("index", "delete", text, "1"),
        ("index", "add", text, tmp_path / "x.txt"),
        ("index", "build", tmp_path / "x.txt", "--model", tmp_path / "none", "--store", text),
    )
    for command in commands:
        assert run(*command) in (2, 74)
    shown = capsys.readouterr()
    assert SECRET not in shown.out + shown.err
    assert shown.err.count("error: ") == len(commands)


def test_a_server_that_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "FIRST_WAIT", 0.3)
    start = time.monotonic()
    with pytest.raises(
        DatabaseError,
        match=r"127\.0\.0\.1:1/d\?table=t: the server did not answer for 0 seconds "
        r"\(.*refused.*\); "
        "nothing was changed; run the same command when it is back",
    ) as told:
        open_store("postgresql://127.0.0.1:1/d?table=t")
    assert 0.3 <= time.monotonic() - start < 5
    assert told.value.exit_code == 74


@pytest.mark.parametrize(("part", "message"), [("none", "database .* does not exist")])
def test_a_server_that_refuses_is_not_asked_again(
    postgres: PostgresServer, part: str, message: str
) -> None:
    start = time.monotonic()
    with pytest.raises(DatabaseError, match=message):
        open_store(postgres.address("t", database=part))
    assert time.monotonic() - start < 4


def test_a_database_of_another_encoding(postgres: PostgresServer) -> None:
    import psycopg

    with psycopg.connect(Address.parse(postgres.address("t")).conninfo, autocommit=True) as one:
        one.execute("CREATE DATABASE ascii ENCODING 'SQL_ASCII' TEMPLATE template0")
    with pytest.raises(ConfigError, match="the encoding of the database is SQL_ASCII"):
        open_store(postgres.address("t", database="ascii"))


def test_a_user_who_may_not_create_tables(postgres: PostgresServer) -> None:
    import psycopg

    with psycopg.connect(Address.parse(postgres.address("t")).conninfo, autocommit=True) as one:
        one.execute("CREATE ROLE guest LOGIN")
        one.execute("CREATE DATABASE guarded")
    address = postgres.address("t", database="guarded").replace("postgres@", "guest@")
    with (
        pytest.raises(DatabaseError, match=r"permission denied .*; nothing was changed"),
        new_store(address, plan(), source_of(texts(3))),
    ):
        pytest.fail("guests must not write")


def test_without_psycopg(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [
        name for name in sys.modules if name.startswith(f"{places.__package__}.postgres.")
    ]:
        if not name.endswith(".address"):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'bertsmith\[postgres\]'"):
        bertsmith.Index.open("postgresql://h/d?table=t")


def test_out_and_store(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    build = ("index", "build", tmp_path / "x.txt", "--model", tmp_path / "none")
    (tmp_path / "x.txt").write_text("x\n")
    assert run(*build) == 2
    assert "give the folder of the index with --out, or a database with --store" in _told(capsys)
    assert run(*build, "--out", "postgresql://h/d?table=t") == 2
    assert "with --store, not with --out" in _told(capsys)
    assert run(*build, "--store", "mysql://h/d") == 2
    assert "--store takes an address of the form postgresql://" in _told(capsys)


def _told(capsys: pytest.CaptureFixture[str]) -> str:
    return " ".join(capsys.readouterr().err.split())
