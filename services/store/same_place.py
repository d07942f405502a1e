"""Whether two URLs of stores name one place, however each is written. Pure."""

from __future__ import annotations

from typing import Final, NamedTuple

from services.store.providers.jetstream_url import STREAM
from services.store.several_hosts import split

_SCHEMES: Final = {"postgres": ("postgresql", 5432), "postgresql": ("postgresql", 5432), "nats": ("nats", 4222)}


class _Place(NamedTuple):
    kind: str
    servers: frozenset[str]
    name: str  # of the database, or of the stream


def same_place(one: str, other: str) -> bool:
    """Whether both name a database or stream of one name on a server that they have in common.

    Options and users make no other place of it. Two names of one server are not known to be that.
    """
    if one == other:
        return True
    here, there = _place(one), _place(other)
    if here is None or there is None:
        return False
    return (here.kind, here.name) == (there.kind, there.name) and bool(here.servers & there.servers)


def _place(url: str) -> _Place | None:
    """None: it cannot be read, which is said where it is used."""
    try:
        parts = split(url)
    except ValueError:
        return None
    if parts.scheme not in _SCHEMES:
        return None
    kind, port = _SCHEMES[parts.scheme]
    identity, _, hosts = parts.netloc.rpartition("@")
    name = parts.path.strip("/") or (STREAM if kind == "nats" else identity.partition(":")[0])
    return _Place(kind, frozenset(_with_port(host.lower(), port) for host in hosts.split(",")), name)


def _with_port(host: str, port: int) -> str:
    _, colon, own = host.rpartition(":")
    return host if colon and own.isdecimal() else f"{host}:{port}"
