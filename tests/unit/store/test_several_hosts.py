"""URLs of stores on several hosts."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest

from services.store.several_hosts import split


@pytest.mark.parametrize(
    ("url", "hosts"),
    [
        ("postgresql://me:a@one:1,[::1]:2,three/x?sslmode=require#f", "me:a@one:1,[::1]:2,three"),
        ("nats://[::1],[::1]:4223", "[::1],[::1]:4223"),
        ("nats://one?replicas=3", "one"),
    ],
)
def test_of_any_version(url: str, hosts: str) -> None:
    """Addresses of version 6 beside other hosts, which newer Pythons refuse; all else is as urlsplit gives it."""
    single = url.replace(hosts, "host")
    assert split(url) == urlsplit(single)._replace(netloc=hosts)


@pytest.mark.parametrize("url", ["nats://one\n", "nats://one:4222/x\r\n", "postgresql://me@one,two\n", "NATS://One"])
def test_from_a_file(url: str) -> None:
    """What ends a line there is no part of it, as urlsplit has it."""
    assert split(url) == urlsplit(url)


@pytest.mark.parametrize(
    "url", ["", "x", "sqlite:", "/a/b?c", "postgresql:///x?host=/run", "nats://", "://", "a?b=c://d/e"]
)
def test_without_hosts(url: str) -> None:
    """As urlsplit gives them."""
    assert split(url) == urlsplit(url)
