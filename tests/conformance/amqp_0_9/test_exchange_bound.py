"""Qpid's exchange.bound, as Broker-J answers it, in every version of the family."""

from __future__ import annotations

import pytest

from services.gateway.answers import BindingFound
from services.gateway.protocols.amqp_0_9.engine import AmqpEngine
from services.gateway.protocols.amqp_0_9.limits import Amqp09Limits
from services.gateway.protocols.amqp_0_9.versions import VERSIONS
from services.gateway.vocabulary import Authenticate, FindBinding, Open, OpenSession, Request
from tests.support.raw_amqp import method, short

BOUND = BindingFound(is_bound=True)
NOT_BOUND = BindingFound()
NO_EXCHANGE = BindingFound(unknown_exchange=True)
NO_QUEUE = BindingFound(unknown_queue=True)


@pytest.fixture(params=VERSIONS, ids=lambda version: version.name)
def engine(request: pytest.FixtureRequest) -> AmqpEngine:
    """With channel 1."""
    engine = AmqpEngine(Amqp09Limits(), ("PLAIN",))
    engine.receive(request.param.header)
    start_ok = bytes(4) + short("PLAIN") + (8).to_bytes(4) + b"\0alice\0p" + short("en_US")
    assert isinstance(_asks(engine, method(10, 11, start_ok, channel=0)), Authenticate)
    engine.authenticated()
    tune = engine.data_to_send()[-1]
    engine.receive(method(10, 31, tune[11:-1], channel=0))
    engine.succeed(opening := _asks(engine, method(10, 40, short("/") + short("") + b"\x01", channel=0)))
    assert isinstance(opening, Open)
    engine.succeed(opening := _asks(engine, method(20, 10, b"\0")))
    assert isinstance(opening, OpenSession)
    engine.data_to_send()
    return engine


def _asks(engine: AmqpEngine, data: bytes) -> Request:
    [request] = engine.receive(data)
    return request


@pytest.mark.parametrize(
    ("key", "queue", "found", "code"),
    [
        ("k", "q", BOUND, 0),
        ("", "", BOUND, 0),
        ("k", "q", NO_EXCHANGE, 1),
        ("k", "q", NO_QUEUE, 2),
        ("", "", NOT_BOUND, 3),
        ("", "q", NOT_BOUND, 4),
        ("k", "", NOT_BOUND, 5),
        ("k", "q", NOT_BOUND, 6),
    ],
)
def test_reply_codes(engine: AmqpEngine, key: str, queue: str, found: BindingFound, code: int) -> None:
    """Which it is depends on what was asked for: a binding with a key, to a queue, both, or any. Empty is any."""
    asked = _asks(engine, method(40, 22, short("e") + short(key) + short(queue)))
    assert asked == FindBinding(1, "e", key or None, queue or None)
    engine.succeed(asked, found)
    said = b"".join(engine.data_to_send())
    assert said[7:13] == b"\x00\x28\x00\x17" + code.to_bytes(2)
    assert (said[13] == 0) is (code == 0)
    assert said == method(40, 23, said[11:-1])


def test_a_text_is_as_long_as_it_may_be(engine: AmqpEngine) -> None:
    """Names have 255 bytes each, and the text that tells them has no more."""
    long = "ä" * 127
    engine.succeed(_asks(engine, method(40, 22, short(long) * 3)), NOT_BOUND)
    said = b"".join(engine.data_to_send())
    assert said[13] in (254, 255)
    assert said[14:-1].decode().startswith("Queue 'ä")


def test_braces_are_nothing_special(engine: AmqpEngine) -> None:
    """A name is put into the text as it is."""
    engine.succeed(_asks(engine, method(40, 22, short("{0.queue}") + short("") + short(""))), NO_EXCHANGE)
    assert b"Exchange '{0.queue}' not found" in b"".join(engine.data_to_send())
