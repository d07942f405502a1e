"""Events that a connection gives its user after it has read something."""

from __future__ import annotations

from typing import NamedTuple

Fields = list[tuple[str, str]]  # header fields, pseudo-header fields first


class Ready(NamedTuple):
    """The peer's first SETTINGS: it is alive, and speaks HTTP/2."""


class MoreStreams(NamedTuple):
    """The peer lets more streams be open at a time than it did."""


class Headers(NamedTuple):
    """The fields of a request, a response or trailers; nothing comes after those that end the stream."""

    stream: int
    fields: Fields
    ended: bool


class Message(NamedTuple):
    """One whole message."""

    stream: int
    data: bytes


class Ended(NamedTuple):
    """The peer sends nothing more on a stream, and ended it without trailers."""

    stream: int


class Reset(NamedTuple):
    """A stream ended early: the peer reset it, or broke its rules; `text` is empty when the peer reset it."""

    stream: int
    code: int
    text: str


class GoneAway(NamedTuple):
    """The peer opens and accepts no more streams; those above `last_stream` have been reset."""

    last_stream: int
    code: int
    text: str


class Pong(NamedTuple):
    """The peer answered a ping: it is alive."""


Event = Ready | MoreStreams | Headers | Message | Ended | Reset | GoneAway | Pong
