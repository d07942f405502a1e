"""Links that end, with or without their sessions, before they are attached (sections 2.5.5, 2.6.3 and 2.6.6)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from services.common.errors import NotFound
from services.gateway import vocabulary as to_broker
from services.gateway.outcomes import UNSENT
from services.gateway.protocols.amqp_1_0.performatives import Attach, Begin, Detach, End
from tests.support.amqp_1_0_playbook import Playbook, credit, framed, receiving, sending, settled

BEGIN = Begin(None, 0, 10, 10)
STEPS = [to_broker.FindNode, to_broker.DeclareQueue, to_broker.Bind, to_broker.Consume]


def _kinds(requests: list[to_broker.Request]) -> list[str]:
    return [type(each).__name__ for each in requests]


def _halfway(kind: type[Any], attach: Attach) -> tuple[Playbook, Any]:
    """A link of which the broker takes its time for one thing."""
    book = Playbook().begun()
    book.waits = {kind}
    waiting = book.says(0, attach)[-1]
    assert isinstance(waiting, kind)
    return book, waiting


@pytest.mark.parametrize("kind", [to_broker.FindNode, to_broker.DeclareQueue, to_broker.Bind])
def test_a_session_that_has_ended_asks_for_nothing_more(kind: type[Any]) -> None:
    """Its number is the next one's by now: the router was away, and the client has tried again on the same channel."""
    book, waiting = _halfway(kind, receiving("x"))
    book.waits = {to_broker.CloseSession, to_broker.OpenSession}
    [close] = book.says(0, End())
    [opens, *_] = book.says(0, BEGIN)
    before = len(book.asked)
    book.serve(waiting)
    assert not {"DeclareQueue", "Bind", "Consume"} & set(_kinds(book.asked[before:]))
    book.serve(close)
    book.serve(opens)
    assert [type(each) for each in book.answers()] == [End, Begin]
    book.waits = set()
    [attach] = book.does(0, receiving())
    assert attach.source is not None


def test_a_session_that_has_ended_refuses_no_link() -> None:
    """Nothing is said behind our end, of a link whose node was not there."""
    book, find = _halfway(to_broker.FindNode, receiving("nowhere"))
    [end] = book.does(0, Detach(9, True))
    assert isinstance(end, End)
    book.serve(find)
    assert book.answers() == []


@pytest.mark.parametrize("kind", STEPS)
@pytest.mark.parametrize("fails", [False, True])
def test_nothing_is_kept_of_links_that_are_given_up(kind: type[Any], *, fails: bool) -> None:
    """By a name that is attached again, or a detach: any client that tries in vain for as long as it lives does it."""
    book = Playbook().begun()
    for _ in range(3):
        book.waits = {kind}
        first = book.says(0, receiving("x"))[-1]
        second = book.says(0, replace(receiving("x", 1), name=receiving("x").name))[-1]
        book.says(0, Detach(1, True))
        book.says(0, Detach(0, True))
        book.waits, book.refused = set(), {kind: NotFound("no")} if fails else {}
        book.serve(second)
        book.serve(first)
        book.refused = {}
    [session] = book.engine._sessions.values()
    assert (session._ours, session._links, session._consumers) == ({}, {}, {})
    assert (book.engine._peer.asked, book.engine._peer.links) == ({}, {})
    assert sum(isinstance(each, Detach) for each in book.answers()) == 6


def test_a_queue_is_deleted_while_its_consumer_begins() -> None:
    """The peer has detached meanwhile, and hears first that there is no such link."""
    book, consume = _halfway(to_broker.Consume, receiving())
    book.says(0, Detach(0, True))
    book.engine.cancelled(1, consume.tag)
    attach, detach = book.answers()
    assert (attach.source, detach.error.condition) == (None, "amqp:resource-deleted")
    book.serve(consume)
    assert book.asked[-1] == to_broker.Cancel(1, consume.tag, link=consume.link)
    assert book.answers() == []


def test_a_cancel_is_answered_behind_our_end() -> None:
    """The peer knows of no session any more, whatever it had detached before."""
    book = Playbook()
    book.receiver()
    book.waits = {to_broker.Cancel}
    [cancel] = book.says(0, Detach(0, True))
    book.does(0, Detach(9, True))
    book.serve(cancel)
    assert book.answers() == []


@pytest.mark.parametrize("end", [Detach(0, True), End()])
def test_copies_that_wait_for_credit(end: Any) -> None:
    """Taken back credit has them wait; with the link they are settled, or the session would keep them."""
    book = Playbook()
    tag = book.receiver(window=0, source={"distribution_mode": "copy"})
    book.says(0, credit(10, window=0))
    book.deliver(tag, 1, *[b"x"] * 10)
    book.says(0, credit(0, window=0))
    assert settled(book.says(0, end)) == [(1, 10, UNSENT)]


def test_a_sender_asks_for_nothing_more() -> None:
    """The same of a link by which the peer sends."""
    book, find = _halfway(to_broker.FindNode, sending())
    book.waits = {to_broker.CloseSession}
    book.says(0, End())
    book.serve(find)
    assert _kinds(book.asked[-1:]) == ["CloseSession"]


def _stolen(book: Playbook) -> None:
    book.waits.add(to_broker.FindNode)
    book.says(0, replace(receiving("x", 1), name=receiving("x").name))


@pytest.mark.parametrize("kind", [to_broker.DeclareQueue, to_broker.Bind])
@pytest.mark.parametrize(
    "end",
    [
        _stolen,
        lambda book: book.says(0, Detach(9, True)),
        lambda book: book.says(0, End()),
        lambda book: book.receives(framed(0, End()) + framed(0, BEGIN)),
    ],
    ids=["stolen", "we end the session", "the peer ends the session", "and begins another one"],
)
@pytest.mark.parametrize("fails", [False, True])
def test_the_queue_that_was_made_for_it_goes(kind: type[Any], end: Any, *, fails: bool) -> None:
    """It has had no consumer, so it would not go by itself, and keep all that its key matches, for ever."""
    book, waiting = _halfway(kind, receiving("x"))
    book.waits.add(to_broker.CloseSession)  # which is done when what was asked before it is
    end(book)
    book.refused = {kind: NotFound("no")} if fails else {}
    book.serve(waiting)
    was_made = not fails or kind is to_broker.Bind
    assert [each for each in book.asked if isinstance(each, to_broker.DropQueue)] == [
        to_broker.DropQueue(0, "own") for _ in range(was_made)
    ]
    assert "Consume" not in _kinds(book.asked)


def test_its_queue_goes_with_its_consumer() -> None:
    """One that has had a consumer does by itself."""
    book, consume = _halfway(to_broker.Consume, receiving("x"))
    _stolen(book)
    book.serve(consume)
    assert book.asked[-1] == to_broker.Cancel(1, consume.tag, link=consume.link)
    assert "DropQueue" not in _kinds(book.asked)
