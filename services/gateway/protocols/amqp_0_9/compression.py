"""Bodies as a client can take them that has said whether it understands gzip: Qpid's message compression.

As in Broker-J: who does gets gzipped bodies as they are, and large ones gzipped; who does not gets them unzipped. What
cannot be unzipped, or would be too large, goes as it came. Nothing of it concerns who has not said it: there an
encoding is the application's affair.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, TypeAlias

from services.common.errors import SyntaxFault
from services.common.message.amqp_0_9 import FORMAT
from services.common.message.remembered import remembered
from services.gateway.protocols.amqp_0_9.limits import Amqp09Limits

PROPERTY: Final = "qpid.message_compression_supported"
"""In the properties of both sides; Qpid's clients send it as text."""

_ENCODING = "content-encoding"
_GZIP = "gzip"
_GZIP_WINDOW = 31  # what zlib calls a header and a trailer of gzip
_QUICKLY = 1  # zlib's level: others wait meanwhile
_MOST_TIMES = 16  # of what lies in a batch: so much may come of it, or the largest message

Columns: TypeAlias = tuple[Sequence[bytes], Sequence[bytes]]
"""Properties and bodies."""

Recode: TypeAlias = Callable[[Sequence[bytes], Sequence[bytes]], Columns]


def recoding_for(client_properties: Mapping[str, Any], limits: Amqp09Limits) -> Recode | None:
    """What is done with messages for a client; None: nothing."""
    said = client_properties.get(PROPERTY)
    if limits.message_compression == "none" or (said is None and limits.message_compression == "negotiated"):
        return None
    if str(said).lower() == "true":
        return partial(_gzipped_when_large, limits.message_compression_threshold)
    return partial(_unzipped, limits.max_message_size)


def _gzipped_when_large(threshold: int, properties: Sequence[bytes], bodies: Sequence[bytes]) -> Columns:
    if max(map(len, bodies)) <= threshold:
        return properties, bodies
    messages = [
        (_as_gzip(raw), zlib.compress(body, _QUICKLY, _GZIP_WINDOW))
        if len(body) > threshold and _encoding(raw) is None
        else (raw, body)
        for raw, body in zip(properties, bodies, strict=True)
    ]
    return [raw for raw, _ in messages], [body for _, body in messages]


def _unzipped(largest: int, properties: Sequence[bytes], bodies: Sequence[bytes]) -> Columns:
    gzipped = [index for index, raw in enumerate(properties) if _encoding(raw) == _GZIP]
    if not gzipped:
        return properties, bodies
    properties, bodies = list(properties), list(bodies)
    room = max(largest, _MOST_TIMES * sum(map(len, bodies)))
    for index in gzipped:
        plain = _unzip(bodies[index], min(largest, room))
        if plain is not None:
            properties[index], bodies[index] = _as_plain(properties[index]), plain
            room -= len(plain)
    return properties, bodies


def _unzip(body: bytes, largest: int) -> bytes | None:
    """None for what is not exactly one whole gzip, or more than `largest` bytes."""
    unzip = zlib.decompressobj(_GZIP_WINDOW)
    try:
        # One more than is allowed, and at least one: 0 would be no limit.
        plain = unzip.decompress(body, largest + 1)
    except zlib.error:
        return None
    return plain if unzip.eof and not unzip.unused_data and len(plain) <= largest else None


@remembered
def _encoding(properties: bytes) -> str | None:
    """An empty one where it cannot be read: that is neither gzip nor none."""
    try:
        return FORMAT.text(properties, _ENCODING)
    except SyntaxFault:
        return ""


@remembered
def _as_gzip(properties: bytes) -> bytes:
    return FORMAT.with_text(properties, _ENCODING, _GZIP)


@remembered
def _as_plain(properties: bytes) -> bytes:
    return FORMAT.with_text(properties, _ENCODING, None)
