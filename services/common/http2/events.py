"""What a connection tells its user after it has read something."""

from __future__ import annotations

from typing import NamedTuple

Fields = list[tuple[str, str]]  # header fields, pseudo-header fields first


class Ready(NamedTuple):
    """The peer's first SETTINGS: it speaks HTTP/2, and is there."""


class Headers(NamedTuple):
    """A request, a response or trailers; nothing comes after those that ended the stream."""

    stream: int
    fields: Fields
    ended: bool


class Message(NamedTuple):
    """One whole message."""

    stream: int
    data: bytes


class Ended(NamedTuple):
    """The peer has said everything on a stream, without trailers."""

    stream: int


class Reset(NamedTuple):
    """A stream ended before its time, by the peer or because it broke the rules; `text` is empty when the peer did."""

    stream: int
    code: int
    text: str


class GoneAway(NamedTuple):
    """The peer opens and takes no more streams; those above `last_stream` have been reset."""

    last_stream: int
    code: int
    text: str


class Pong(NamedTuple):
    """The peer answered a ping: it lives."""


Event = Ready | Headers | Message | Ended | Reset | GoneAway | Pong
