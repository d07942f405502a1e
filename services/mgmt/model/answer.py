"""What an operation answers that is more than its JSON. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple


class ToPublish(NamedTuple):
    """A message that whoever has the caller's connection publishes, as the caller's."""

    exchange: str
    key: str
    format: str
    properties: bytes
    body: bytes


@dataclass(frozen=True, slots=True)
class Answer:
    """`value` is JSON. Over HTTP it has `headers`, and is `data` itself where there is some. Over AMQP it holds once
    `publish` is published.
    """

    value: Any
    headers: Mapping[str, str] = field(default_factory=dict)
    data: bytes | None = None
    pieces: Iterator[bytes] | None = None
    """Instead of it, what is too large to be held at once: read as it is sent, outside the event loop."""
    publish: ToPublish | None = None
