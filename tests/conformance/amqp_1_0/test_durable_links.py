"""AMQP 1.0, part 3, section 3.5.6: what a link that outlives its connection asks for, and what it leaves behind."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from services.common.errors import AccessRefused, BrokerError, InternalError, LinkStolen, NotFound, Unavailable
from services.gateway import answers
from services.gateway import vocabulary as to_broker
from services.gateway.protocols.amqp_1_0.durable_record import Record, queue_of
from services.gateway.protocols.amqp_1_0.performatives import Attach, Detach, End
from tests.support.amqp_1_0_playbook import Playbook, receiving

QUEUE = queue_of("client", "of x")
NEVER: dict[str, Any] = {"durable": 2, "expiry_policy": "never"}


class Book(Playbook):
    """Whose broker has no such queue before, or has it."""

    def __init__(self, *, there: bool = False) -> None:
        super().__init__()
        self._there = there
        self.begun()

    def serve(self, request: to_broker.Request) -> None:
        if isinstance(request, to_broker.ReplaceQueue) and type(request) not in self.refused:
            self.engine.succeed(request, answers.QueueReplaced(7, created=not self._there))
            self._serve(self.engine.pending_requests())
        else:
            super().serve(request)

    def deletes(self) -> list[to_broker.Request]:
        """What was to be deleted."""
        return [each for each in self.asked if isinstance(each, to_broker.DeleteQueue)]


@pytest.mark.parametrize(
    ("kind", "error", "deleted"),
    [
        (to_broker.ReplaceQueue, AccessRefused("may not read"), []),
        (to_broker.Consume, NotFound("the queue was deleted"), [(QUEUE, True)]),
    ],
)
def test_an_attach_that_is_refused(kind: type[to_broker.Request], error: Exception, deleted: list[Any]) -> None:
    """Leaves no queue behind, which nobody would end."""
    book = Book()
    book.refused[kind] = error
    attach, detach = book.does(0, receiving("x", 0, NEVER))
    assert attach.source is None
    assert isinstance(detach, Detach)
    assert [(each.name, each.if_unused) for each in book.deletes()] == deleted  # type: ignore[attr-defined]


@pytest.mark.parametrize("error", [Unavailable("no owner"), InternalError("cannot be served"), LinkStolen("stolen")])
def test_an_attach_for_which_its_queue_is_not_served(error: BrokerError) -> None:
    """It is bound, and may be another's that took the link up meanwhile, and is away again: that one has it."""
    book = Book()
    book.refused[to_broker.Consume] = error
    attach, detach = book.does(0, receiving("x", 0, NEVER))
    assert attach.source is None
    assert isinstance(detach, Detach)
    assert book.deletes() == []


def test_found_again() -> None:
    """By its name alone: it says that it is from an exchange, as it said before."""
    book = Book(there=True)
    record = Record("client", "of x", "x", "#", "")
    book.waits.add(to_broker.DeclareQueue)
    book.says(0, replace(receiving("x", 0), source=None))
    book.engine.succeed(book.asked[-1], answers.QueueDeclared(QUEUE, 0, 0, record.arguments))
    book._serve(book.engine.pending_requests())
    [attach] = [each for each in book.answers() if isinstance(each, Attach)]
    assert (attach.source.address, attach.source.capabilities) == ("x", ("exchange",))


def test_an_attach_that_ends_meanwhile() -> None:
    """The same of one that we have ended before it was there: its consumer goes first."""
    book = Book()
    book.waits.add(to_broker.Consume)
    book.says(0, receiving("x", 0, NEVER))
    consume = book.asked[-1]
    book.engine.fail(to_broker.Credit(1, "t", 1, link=consume.link), NotFound("no"))
    book.serve(consume)
    assert len(book.deletes()) == 1


def test_attached_once_more_before_it_is_there() -> None:
    """The queue is the next one's."""
    book = Book()
    book.waits.add(to_broker.ReplaceQueue)
    book.says(0, receiving("x", 0, NEVER))
    book.says(0, replace(receiving("x", 1, NEVER), name="of x"))
    for each in [each for each in book.asked if isinstance(each, to_broker.ReplaceQueue)]:
        book.serve(each)
    assert book.deletes() == []


@pytest.mark.parametrize("waits", [to_broker.FindNode, to_broker.ReplaceQueue])
def test_closed_before_it_is_there(waits: type[to_broker.Request]) -> None:
    """Its queue is deleted behind what is under way, and nothing more asked for; the peer is told what it asked for."""
    book = Book()
    book.waits.update((waits, to_broker.DeleteQueue))
    book.says(0, receiving("x", 0, NEVER))
    book.says(0, Detach(0, True))
    pending, delete = book.asked[-2:]
    assert (delete.name, delete.if_unused) == (QUEUE, False)  # type: ignore[attr-defined]
    book.serve(pending)
    assert book.asked[-1] is delete
    book.serve(delete)
    attach, detach = book.answers()
    assert attach.source.address == "x"
    assert (detach.closed, detach.error) == (True, None)


def test_closed_while_it_is_looked_for() -> None:
    """A link that is found by its name alone, and gone by then, is told that it has no source."""
    book = Book(there=True)
    book.waits.update((to_broker.DeclareQueue, to_broker.DeleteQueue))
    book.says(0, replace(receiving("x", 0), source=None))
    book.says(0, Detach(0, True))
    for each in book.asked[-2:]:
        book.serve(each)
    attach, detach = book.answers()
    assert (attach.source, detach.closed, detach.error) == (None, True, None)


def test_closed_while_its_consumer_comes() -> None:
    """That ends with its queue, though nothing is answered; where it is, the peer is told once."""
    book = Book()
    book.waits.update((to_broker.Consume, to_broker.Cancel))
    book.says(0, receiving("x", 0, NEVER))
    [cancel] = book.says(0, Detach(0, True))
    assert cancel.deletes  # type: ignore[attr-defined]
    consume = book.asked[-2]
    book.waits.clear()
    book.serve(consume)
    book.serve(cancel)
    attach, detach = book.answers()
    assert (attach.source.address, detach.closed, detach.error) == ("x", True, None)


@pytest.mark.parametrize(
    ("waits", "error"),
    [(to_broker.ReplaceQueue, AccessRefused("may not")), (to_broker.Consume, NotFound("the queue was deleted"))],
)
def test_closed_before_it_is_refused(waits: type[to_broker.Request], error: Exception) -> None:
    """What was asked behind that is not carried out, and nothing is kept for its answer."""
    book = Book()
    book.waits.update((waits, to_broker.DeleteQueue, to_broker.Cancel))
    book.refused[waits] = error
    book.says(0, receiving("x", 0, NEVER))
    book.says(0, Detach(0, True))
    pending, early = book.asked[-2:]
    book.serve(pending)
    attach, detach = book.answers()
    assert attach.source is None
    assert detach.error is not None
    assert id(early) not in book.engine._connection._peer.asked


@pytest.mark.parametrize(("error", "deleted"), [(Unavailable("no owner"), [QUEUE]), (LinkStolen("stolen"), [])])
def test_closed_before_its_queue_is_served(error: BrokerError, deleted: list[str]) -> None:
    """What it has made for that is not kept for its client, which wants it no more, but for another that has it."""
    book = Book()
    book.waits.update((to_broker.Consume, to_broker.Cancel))
    book.refused[to_broker.Consume] = error
    book.says(0, receiving("x", 0, NEVER))
    book.says(0, Detach(0, True))
    consume, _ = book.asked[-2:]
    book.serve(consume)
    assert [each.name for each in book.deletes()] == deleted  # type: ignore[attr-defined]


def closed(book: Book, handle: int) -> None:
    """Attached by the name of all others here, and closed."""
    book.says(0, replace(receiving("x", handle, NEVER), name="of x"))
    book.says(0, Detach(handle, True))


@pytest.mark.parametrize("waits", [to_broker.FindNode, to_broker.Consume, None])
def test_attached_anew_while_it_is_closed(waits: type[to_broker.Request] | None) -> None:
    """The next one waits for its end: they have one queue, which goes. So do others behind that, closed as well."""
    book = Book()
    book.waits.update(filter(None, (waits, to_broker.DeleteQueue, to_broker.Cancel)))
    closed(book, 0)
    asked = book.asked[-2:] if waits else book.asked[-1:]
    closed(book, 1)
    book.says(0, replace(receiving("x", 2, NEVER), name="of x"))
    assert [each for each in book.asked if each.link > 1] == []  # type: ignore[attr-defined]
    book.answers()
    book.waits.clear()
    for each in asked:
        book.serve(each)
    assert {each.link for each in book.asked} - {0} == {1, 3}  # type: ignore[attr-defined]
    assert [(type(each), each.handle) for each in book.answers() if isinstance(each, (Attach, Detach))][-3:] == [
        (Attach, 1),
        (Detach, 1),
        (Attach, 2),
    ]


def test_attached_anew_while_it_is_closed_and_detached_meanwhile() -> None:
    """Each is answered: it has waited, was there, and has ended before the next one begins."""
    book = Book()
    book.waits.add(to_broker.Cancel)
    closed(book, 0)
    cancel = book.asked[-1]
    book.says(0, replace(receiving("x", 1, NEVER), name="of x"))
    book.says(0, Detach(1, False))
    book.says(0, replace(receiving("x", 2, NEVER), name="of x"))
    book.answers()
    book.waits.clear()
    book.serve(cancel)
    answers = [(type(each), each.handle) for each in book.answers() if isinstance(each, (Attach, Detach))]
    assert answers == [(Detach, 0), (Attach, 1), (Detach, 1), (Attach, 2)]


def test_attached_anew_in_another_session() -> None:
    """Names are the connection's. One whose session has ended while it waited does not begin."""
    book = Book()
    book.begun(1)
    book.begun(2)
    book.waits.add(to_broker.Cancel)
    closed(book, 0)
    cancel = book.asked[-1]
    for channel in (1, 2):
        book.says(channel, replace(receiving("x", 0, NEVER), name="of x"))
    book.says(2, End())
    asked = len(book.asked)
    book.waits.clear()
    book.serve(cancel)
    assert len(book.asked) == asked


def test_a_link_of_a_queue_that_is_closed_before_it_is_there() -> None:
    """Is as any other: its consumer comes, and ends."""
    book = Book()
    book.waits.add(to_broker.Consume)
    book.says(0, receiving("q", 0, NEVER))
    assert book.says(0, Detach(0, True)) == []
    book.serve(book.asked[-1])
    attach, detach = book.answers()
    assert (attach.source.address, detach.closed, detach.error) == ("q", True, None)
    assert book.deletes() == []


def test_begun_it_leaves_its_queue() -> None:
    """Detached, it can be taken up; closed, its queue goes with its consumer."""
    book = Book()
    book.says(0, receiving("x", 0, NEVER))
    for closed in (False, True):
        *_, cancel = book.says(0, Detach(0, closed))
        assert isinstance(cancel, to_broker.Cancel)
        assert cancel.deletes is closed
        book.answers()
        book.says(0, receiving("x", 0, NEVER))
    assert book.deletes() == []
