"""Consumers whose clients say message by message what they take (AMQP 1.0, section 2.6.7)."""

from __future__ import annotations

from typing import Any, cast

import pytest

from services.gateway.sessions.consumer import Consumer, ConsumerState
from services.gateway.sessions.credit import LinkCredit
from services.gateway.vocabulary import Credit
from services.rpc import queue_pb2 as pb

ROOM = 1 << 20


class Session:
    """Nothing is kept; answers are written down."""

    shared_limit = 0

    def __init__(self) -> None:
        self.answered: list[Credit] = []
        self.connection = cast("Any", type("Connection", (), {"name": "1.1"}))

    def kept_for(self, _consumer: Consumer) -> tuple[int, int]:
        return 0, 0

    def release(self, _consumer: Consumer) -> None:
        """Nothing was held."""

    def keep_within_limit(self, _consumer: Consumer) -> None:
        """Nothing waits."""

    def answer(self, request: Credit) -> None:
        self.answered.append(request)


class Link:
    """Credit that an owner was given: messages, and whether it is drained; how often it was asked to stop."""

    def __init__(self) -> None:
        self.given: list[tuple[int, bool]] = []
        self.attached = self.stopped = 0

    def credit(self, _consumer: int, messages: int, _size: int, *, drain: bool = False, stop: bool = False) -> None:
        if stop:
            self.stopped += 1
        else:
            self.given.append((messages, drain))

    def attach(self, consumer: Any) -> None:
        self.attached = consumer.messages


@pytest.fixture
def session() -> Session:
    return Session()


@pytest.fixture
def link() -> Link:
    return Link()


@pytest.fixture
def consumer(session: Session, link: Link) -> Consumer:
    """One that its owner serves."""
    return Consumer(
        handle=1, session=cast("Any", session), tag="t", queue_id=1, settled=False, exclusive=False, browse=False,
        priority=0, credit=LinkCredit(), window=ROOM, place=cast("Any", None), state=ConsumerState.ATTACHED,
        link=cast("Any", link), started=True,
    )  # fmt: skip


def test_what_is_given_is_passed_on(consumer: Consumer, link: Link) -> None:
    """Each message once: what has come counts as used, what was settled does not come back."""
    consumer.give(Credit(1, "t", 3))
    consumer.grant()
    consumer.written(2, 10)
    consumer.returned(2)
    consumer.grant()
    consumer.give(Credit(1, "t", 5))
    consumer.grant()
    assert link.given == [(3, False), (2, False)]


def test_less_credit(consumer: Consumer, link: Link) -> None:
    """What an owner was given already is not given again when there is more."""
    consumer.give(Credit(1, "t", 10))
    consumer.grant()
    consumer.give(Credit(1, "t", 4))
    consumer.give(Credit(1, "t", 11))
    consumer.grant()
    assert link.given == [(10, False), (1, False)]


def test_the_next_owner(consumer: Consumer, link: Link) -> None:
    """It gets the credit that was not used, regardless of the former one's."""
    consumer.give(Credit(1, "t", 10))
    consumer.grant()
    consumer.written(4, 10)
    consumer.attach(cast("Any", link), 0, [1, 2, 3, 4], again=True)
    assert link.attached == 6


def test_a_drain(consumer: Consumer, session: Session, link: Link) -> None:
    """It is answered when all that came of it is written, and the rest of the credit is gone."""
    consumer.give(Credit(1, "t", 10))
    drain = consumer.drain = Credit(1, "t", 10, True)
    consumer.grant()
    consumer.drained(7)
    assert session.answered == []
    consumer.written(3, 10)
    assert session.answered == [drain]
    consumer.give(Credit(1, "t", 5))
    consumer.grant()
    assert link.given == [(10, True), (2, False)]


def test_a_drain_is_taken_back(consumer: Consumer, session: Session, link: Link) -> None:
    """By other credit: it is answered, and its client, which knows that nothing was used up, can use all of it."""
    consumer.give(Credit(1, "t", 10))
    drain = consumer.drain = Credit(1, "t", 10, True)
    consumer.grant()
    consumer.give(Credit(1, "t", 20))
    consumer.grant()
    assert session.answered == [drain]
    consumer.drained(7)
    assert link.given == [(10, True), (10, False), (7, False)]


def test_a_drain_is_said_again(consumer: Consumer, session: Session, link: Link) -> None:
    """With every grant, since room for bytes may be what it waits for."""
    consumer.give(Credit(1, "t", 5))
    consumer.drain = Credit(1, "t", 5, True)
    consumer.grant()
    consumer.written(1, 100)
    consumer.grant()
    assert link.given == [(5, True), (0, True)]
    assert session.answered == []


def _takes_back(consumer: Consumer) -> None:
    """Of credit for ten all but two, once the owner has it."""
    consumer.stops = True
    consumer.give(Credit(1, "t", 10))
    consumer.grant()
    consumer.give(Credit(1, "t", 2))


def test_credit_is_taken_back(consumer: Consumer, link: Link) -> None:
    """What the owner has of it too much: what is given meanwhile counts once all that was on its way has come."""
    _takes_back(consumer)
    consumer.give(Credit(1, "t", 8))
    consumer.grant()
    assert (consumer.room, link.given, link.stopped) == (2, [(10, False)], 1)
    consumer.written(2, 10)
    consumer.unsent(1, 10)
    consumer.stopped(7)
    assert (consumer.room, link.given) == (6, [(10, False), (6, False)])


def test_less_still(consumer: Consumer, link: Link) -> None:
    """It counts at once, and the owner is not asked a second time."""
    _takes_back(consumer)
    consumer.give(Credit(1, "t", 1))
    assert (consumer.room, link.stopped) == (1, 1)
    consumer.stopped(10)
    assert (consumer.due, link.given) == (0, [(10, False), (1, False)])


def test_a_drain_behind_what_is_taken_back(consumer: Consumer, session: Session, link: Link) -> None:
    """It waits for that, and is answered by other credit as any drain is."""
    _takes_back(consumer)
    first, second = Credit(1, "t", 8, True), Credit(1, "t", 9, True)
    consumer.give(first)
    consumer.give(second)
    assert (session.answered, link.given) == ([first], [(10, False)])
    consumer.stopped(10)
    assert (session.answered, link.given) == ([first], [(10, False), (9, True)])
    consumer.drained(9)
    assert session.answered == [first, second]


def test_credit_is_taken_back_before_the_owner_has_answered(consumer: Consumer, link: Link) -> None:
    """It was said with the question."""
    consumer.give(Credit(1, "t", 10))
    consumer.attach(cast("Any", link), 0, [], again=True)
    consumer.give(Credit(1, "t", 2))
    assert link.stopped == 0
    consumer.attached(pb.Attached(stops=True))
    assert link.stopped == 1


def test_an_owner_ends_while_it_is_asked(consumer: Consumer, link: Link) -> None:
    """The next one has all the credit that was given meanwhile: what was on its way does not come."""
    _takes_back(consumer)
    consumer.give(Credit(1, "t", 8))
    consumer.state = ConsumerState.OWNERLESS
    consumer.attach(cast("Any", link), 0, [], again=True)
    assert (link.attached, consumer.stopping) == (8, False)


def test_owners_of_a_former_release(consumer: Consumer, link: Link) -> None:
    """They are not asked for credit: they would not answer."""
    consumer.give(Credit(1, "t", 10))
    consumer.grant()
    consumer.give(Credit(1, "t", 2))
    assert (link.stopped, consumer.stopping) == (0, False)
