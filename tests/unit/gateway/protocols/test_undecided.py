"""Which protocol a peer speaks is known by its first bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from services.common.errors import ConnectionForced
from services.gateway.protocols.amqp_0_9.engine import AmqpEngine
from services.gateway.protocols.amqp_1_0.engine import Amqp10Engine
from services.gateway.protocols.undecided import Undecided
from services.gateway.vocabulary import Close

if TYPE_CHECKING:
    from services.gateway.protocols.engine import Engine

KINDS: list[type[Engine]] = [AmqpEngine, Amqp10Engine]


def _created(kind: type[Engine]) -> Engine:
    return kind(kind.LIMITS(), ("PLAIN",))  # type: ignore[call-arg]  # as connections/engines.py


class Peer:
    def __init__(self) -> None:
        self.engine: Engine = Undecided(KINDS, _created)
        assert isinstance(self.engine, Undecided)
        self.engine.become = self.become

    def become(self, engine: Engine) -> None:
        self.engine = engine


@pytest.mark.parametrize(
    ("header", "name"),
    [
        (b"AMQP\x00\x00\x09\x01", "AMQP 0-9-1"),
        (b"AMQP\x01\x01\x08\x00", "AMQP 0-8"),
        (b"AMQP\x01\x01\x00\x09", "AMQP 0-9"),
        (b"AMQP\x00\x01\x00\x00", "AMQP 1.0"),
        (b"AMQP\x03\x01\x00\x00", "AMQP 1.0"),
    ],
)
@pytest.mark.parametrize("step", [1, 8])
def test_headers(header: bytes, name: str, step: int) -> None:
    """Each protocol's, however they are split."""
    peer = Peer()
    for start in range(0, len(header), step):
        peer.engine.receive(header[start : start + step])
    assert peer.engine.name == name
    assert peer.engine.data_to_send()


@pytest.mark.parametrize("opening", [b"AMQP\x00\x00\x0a\x00", b"GET / HTTP/1.1\r\n", b"\x16"])
def test_an_unknown_protocol(opening: bytes) -> None:
    """The first protocol answers, with its header and a close."""
    peer = Peer()
    assert [type(request) for request in peer.engine.receive(opening)] == [Close]
    assert peer.engine.data_to_send() == [b"AMQP\x00\x00\x09\x01"]


def test_before_it_is_known() -> None:
    """Until then there is nothing to say, not even at the end."""
    engine = Undecided(KINDS, _created)
    assert engine.receive(b"AMQP\x00") == []
    assert engine.incomplete == 5
    engine.beat()
    engine.blocked("low on memory")
    engine.close(ConnectionForced("broker is shutting down"))
    assert engine.data_to_send() == []
    [close] = engine.pending_requests()
    engine.succeed(close)
