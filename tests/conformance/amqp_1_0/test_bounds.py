"""What one peer of AMQP 1.0 can make a gateway hold: links may be many, and live long."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from services.common.message.amqp_1_0 import composite
from services.common.message.amqp_1_0 import values as v
from services.common.message.amqp_1_0.encode import encode
from services.common.message.amqp_1_0.sections import Properties
from services.gateway import vocabulary as to_broker
from services.gateway.outcomes import FAILED
from services.gateway.protocols.amqp_1_0.filters import Filters
from services.gateway.protocols.amqp_1_0.performatives import Attach, Detach, End
from services.gateway.protocols.amqp_1_0.states import Rejected
from tests.support.amqp_1_0_playbook import Playbook, data, framed, receiving, sending, settled, transfer

ENDS = pytest.mark.parametrize("end", [sending, receiving])


@ENDS
def test_what_an_attach_says(end: Any) -> None:
    """Section 2.7.3: nothing of it is kept that is not needed when it is answered: 72 KB were over a megabyte."""
    book = Playbook().begun()
    many = {v.Symbol(f"p{number}"): None for number in range(1000)}
    book.does(0, end("q", properties=many))
    [link] = book.engine._sessions[0]._links.values()
    assert link._attach == Attach("", 0, end("q").role)


@ENDS
def test_names_of_links(end: Any) -> None:
    """Section 2.6.1: any name will do, of a length with which many can be kept."""
    book = Playbook().begun()
    assert book.does(0, replace(end("q"), name="n" * 1024))[0].name == "n" * 1024
    [ended] = book.does(0, replace(end("q", 1), name="n" * 1025))
    assert ended.error.condition == "amqp:invalid-field"
    assert book.engine._peer.links == {}


def test_what_is_said_of_long_addresses() -> None:
    """Section 2.4.1: a peer may take no more than 512 bytes at a time, and answers to many may have to wait."""
    book = Playbook().opened(max_frame_size=512)
    book.begun()
    book.says(0, replace(sending("/é" * 5000), name="n"))
    _, detach = book.answers()
    assert detach.error.condition == "amqp:invalid-field"
    assert len(framed(0, detach)) <= 512
    assert len(framed(0, End(detach.error))) <= 512


def test_what_refused_links_said() -> None:
    """A peer need not detach from those: neither addresses nor selectors of theirs stay."""
    book = Playbook().begun()
    said = {v.Symbol("s"): v.Described(v.Symbol("apache.org:selector-filter:string"), "a = 1")}
    attach, detach = book.does(0, replace(receiving("n" * 5000, source={"filter": said}), name="n"))
    assert (attach.source, detach.error.condition) == (None, "amqp:not-found")
    [link] = book.engine._sessions[0]._ours.values()
    kept = [getattr(link, name) for name in link.__dict__]
    assert "n" * 5000 not in kept
    assert Filters(selector="a = 1") not in kept


def test_tags_of_long_names() -> None:
    """Every delivery's record says the tag."""
    book = Playbook().begun()
    book.says(0, replace(receiving("q"), name="é" * 500))
    assert book.asked[-1].tag == "é" * 100 + ".1.1"  # type: ignore[attr-defined]


def test_kinds_of_messages() -> None:
    """Those that differ in their keys are remembered by number and size, of all links of a connection together."""
    book = Playbook().sender("x")
    book.does(0, sending("x", 1))
    for number in range(6000):
        message = composite.write(Properties(subject=f"{number}" * 50)) + data()
        book.engine.receive(framed(0, transfer(number, number % 2, settled=True), message))
    kinds = book.engine._peer.kinds
    assert 1000 < len(kinds) + len(kinds._aside) < 4000  # of 150 to 200 bytes: half a megabyte


@pytest.mark.parametrize(
    ("message", "why"),
    [
        (b"\x00\x53\x75\xa0\x00" * 2000, "sections"),
        (encode(v.Described(v.ULong(0x74), {f"k{n}": n for n in range(1500)})) + data(), "values"),
    ],
)
def test_messages_in_many_parts(message: bytes, why: str) -> None:
    """Sections 3.2 and 3.2.5: one that holds up whoever reads it is rejected, and its link goes on."""
    book = Playbook().sender()
    [rejected] = book.does(0, transfer(0), message)
    assert isinstance(rejected.state, Rejected)
    assert rejected.state.error.condition == "amqp:precondition-failed"
    assert why in rejected.state.error.description
    [taken] = book.says(0, transfer(1), data())
    assert isinstance(taken, to_broker.Publish)


def test_the_end_of_a_link_beside_another_that_holds_much() -> None:
    """It looks at what the link was sent, not at all that its session was: 200,000 took 20 ms each time."""

    class Looked(dict[int, Any]):
        def __iter__(self) -> Iterator[int]:
            raise AssertionError("all of it was looked at")

        items = __iter__  # type: ignore[assignment]

    book = Playbook()
    first = book.receiver()
    book.deliver(first, 1, *[b"x"] * 100)
    book.does(0, receiving("q", 1))
    second = book.asked[-1].tag  # type: ignore[attr-defined]
    book.deliver(second, 101, b"y", b"z")
    deliveries = book.engine._sessions[0].deliveries
    deliveries._unsettled = Looked(deliveries._unsettled)
    assert settled(book.says(0, Detach(1, True))) == [(101, 102, FAILED)]
