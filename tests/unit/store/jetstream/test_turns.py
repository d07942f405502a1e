"""Servers of a cluster take turns in being tried first."""

from __future__ import annotations

from services.store.providers.jetstream_turns import Turns
from services.store.providers.jetstream_url import parse

_URL = "nats://me:secret@one,two,three/STREAM?replicas=3"


def test_each_is_first_in_its_turn() -> None:
    """Of any three attempts in a row each begins with another server, and each names all of them."""
    turns = Turns(parse(_URL))
    tried = [turns.next().servers for _ in range(6)]
    assert {each[0] for each in tried[:3]} == {each[0] for each in tried[3:]} == set(parse(_URL).servers)
    assert all(sorted(each) == sorted(parse(_URL).servers) for each in tried)


def test_the_rest_stays() -> None:
    """Only the order of the servers is another."""
    url = Turns(parse(_URL)).next()
    assert (url.user, url.stream, url.replicas) == ("me", "STREAM", 3)
