"""Frames that ask for nothing are read in portions too: a peer can send a hundred thousand of them in a moment."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from pamqp import commands, header

from services.common.message.amqp_1_0 import values as v
from services.common.message.amqp_1_0.encode import encode
from services.common.message.bounds import MOST_SENT
from services.gateway.protocols.amqp_0_9.engine import AmqpEngine
from services.gateway.protocols.amqp_1_0.engine import Amqp10Engine
from services.gateway.protocols.amqp_1_0.performatives import Disposition, Flow
from services.gateway.protocols.amqp_1_0.states import Accepted
from services.gateway.protocols.stream_engine import MOST_EFFORT
from services.gateway.vocabulary import Publish, Request
from tests.support import amqp_1_0_playbook as new
from tests.support import amqp_playbook as old

_BEAT = b"\x08\x00\x00\x00\x00\x00\x00\xce"
_EMPTY_BODY = b"\x03\x00\x01\x00\x00\x00\x00\xce"
_EMPTY = b"\x00\x00\x00\x08\x02\x00\x00\x00"
_EMPTY_SASL = b"\x00\x00\x00\x08\x02\x01\x00\x00"


def publishing() -> AmqpEngine:
    book = old.Playbook().running()
    book.client(1, commands.Basic.Publish(0, "", "q"), header.ContentHeader(body_size=5))
    return book.engine


def portions(engine: Any, data: bytes) -> list[list[Request]]:
    """All that is read of it, as it comes."""
    found = [engine.receive(data)]
    while engine.unread:
        found.append(engine.receive(b""))
    return found


def acks() -> bytes:
    return b"".join(old.written(1, commands.Basic.Ack(number * 2)) for number in range(1, 3000))


@pytest.mark.parametrize(
    ("engine", "data", "least"),
    [
        (lambda: old.Playbook().running().engine, _BEAT * 20_000, 20),
        (publishing, _EMPTY_BODY * 20_000, 20),
        (lambda: old.Playbook().running().engine, acks(), 50),
        (lambda: new.Playbook().begun().engine, _EMPTY * 20_000, 20),
        (lambda: new.Playbook().begun().engine, new.framed(0, Flow(0, 9, 0, 9, echo=True)) * 2000, 15),
        (lambda: new.Playbook().begun().engine, new.framed(0, Disposition(True, 0, 9, True, Accepted())) * 2000, 15),
    ],
    ids=["beats", "empty bodies", "acks", "empty frames", "flows", "dispositions"],
)
def test_frames_come_in_portions(engine: Callable[[], Any], data: bytes, least: int) -> None:
    """Of about a millisecond, after each of which others have their turn."""
    its = engine()
    assert len(portions(its, data)) >= least
    assert not its.incomplete or engine is publishing


def test_what_a_performative_says_counts() -> None:
    """A frame of thousands of values takes as long as hundreds of usual ones."""
    book = new.Playbook().begun()
    many = {v.Symbol(f"p{number}"): None for number in range(1000)}
    engine = book.engine
    assert len(portions(engine, new.framed(0, Flow(0, 9, 0, 9, properties=many)) * 10)) == 10


@pytest.mark.parametrize("count", [MOST_SENT // 2 - 1, MOST_SENT])
def test_what_is_in_front_of_bodies_counts(count: int) -> None:
    """It is counted, and so takes time, whether it is taken or not."""
    many = encode(v.Described(v.ULong(0x74), {f"number {number}": number for number in range(count)}))
    book = new.Playbook().sender()
    data = b"".join(new.framed(0, new.transfer(number), many + new.data()) for number in range(4))
    assert len(portions(book.engine, data)) == 4


def test_headers_count() -> None:
    """Likewise in 0-9; usual ones are read at once."""
    book = old.Playbook().running()
    many = {f"number {number}": number for number in range(MOST_SENT)}
    found = portions(book.engine, old.content(1, b"x", headers=many) * 4)
    assert len(found) >= 4
    assert sum(len(each.bodies) for part in found for each in part if isinstance(each, Publish)) == 4
    few = portions(book.engine, old.content(1, b"x", headers={"a": 1}) * 1000)
    assert len(few) == 1
    assert book.engine.effort < MOST_EFFORT


def test_transfers_that_bring_no_message() -> None:
    """A delivery in pieces, of which each may be empty."""
    piece = new.framed(0, replace(new.transfer(0), more=True))
    assert len(portions(new.Playbook().sender().engine, piece * 1000)) >= 8


def test_messages_of_1_0_are_handed_on_together() -> None:
    """Hundreds in a portion: what is done for each portion is done for few."""
    book = new.Playbook().sender()
    data = b"".join(new.framed(0, new.transfer(number, settled=True), new.data()) for number in range(500))
    found = portions(book.engine, data)
    assert len(found) <= 2
    assert sum(len(each.bodies) for part in found for each in part if isinstance(each, Publish)) == 500


def test_usual_publishes_are_no_effort() -> None:
    """What has a hot way is counted in messages."""
    book = old.Playbook().running()
    book.engine.receive(old.content(1, b"x" * 100) * 1000)
    assert not book.engine.effort


def test_what_waits_is_asked_for() -> None:
    """A rest behind the answer of the broker is not forgotten when there is no request in front of it."""
    book = old.Playbook().running()
    book.engine.receive(_BEAT * 2000)
    assert book.engine.unread
    assert book.engine.asks


@pytest.mark.parametrize(
    ("engine", "opening", "beat"),
    [
        (AmqpEngine, old.HEADER, _BEAT),
        (Amqp10Engine, b"AMQP\x03\x01\x00\x00", _EMPTY_SASL),
    ],
)
def test_beats_before_the_connection_is_open(engine: Any, opening: bytes, beat: bytes) -> None:
    """A peer that has not signed in has no need of many."""
    its = engine(engine.LIMITS(), ("PLAIN",))
    its.receive(opening)
    assert not its.receive(beat * 100)
    [close] = its.receive(beat)
    assert "before the connection is open" in close.reason
    assert not its.receive(beat * 100_000)
    assert not its.effort


def test_beats_when_it_is_open() -> None:
    """There may be any number, in time."""
    for book, beat in ((old.Playbook().running(), _BEAT), (new.Playbook().begun(), _EMPTY)):
        assert not any(portions(book.engine, beat * 5000))
