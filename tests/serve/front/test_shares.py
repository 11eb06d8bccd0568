"""Amounts that clients share: one that takes all it can leaves room for others."""

from __future__ import annotations

from bertsmith.serve.shares import Shares


def taken(shares: Shares, client: str, amount: int = 1) -> int:
    """How often a client gets an amount until it is refused."""
    count = 0
    while shares.take(client, amount):
        count += 1
    return count


def test_each_client_leaves_as_much_as_it_has() -> None:
    shares = Shares(120)
    assert taken(shares, "one") == 60
    assert taken(shares, "two") == 30
    assert shares.take("three")
    shares.give("one", 60)
    assert taken(shares, "two") == 29  # 59 in all, with 60 of 120 free for others
    assert shares.held == 60


def test_what_is_given_back_is_free_again() -> None:
    shares = Shares(100)
    for _ in range(50):
        assert shares.take("one", 40)
        assert not shares.take("one", 40)
        shares.give("one", 40)
    assert shares.held == 0
    assert not shares.take("one", 51)
    shares.give("nobody", 0)
    assert shares._clients == {}
