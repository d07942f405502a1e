"""Consumers whose clients say message by message what they take (AMQP 1.0, section 2.6.7)."""

from __future__ import annotations

from typing import Any, cast

import pytest

from services.gateway.sessions.consumer import Consumer, ConsumerState
from services.gateway.sessions.credit import LinkCredit
from services.gateway.vocabulary import Credit

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

    def answer(self, request: Credit) -> None:
        self.answered.append(request)


class Link:
    """Credit that an owner was given: messages, and whether it is drained."""

    def __init__(self) -> None:
        self.given: list[tuple[int, bool]] = []
        self.attached = 0

    def credit(self, _consumer: int, messages: int, _size: int, *, drain: bool = False) -> None:
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
    consumer.take(3)
    consumer.grant()
    consumer.written(2, 10)
    consumer.returned(2)
    consumer.grant()
    consumer.take(5)
    consumer.grant()
    assert link.given == [(3, False), (2, False)]


def test_less_credit(consumer: Consumer, link: Link) -> None:
    """What an owner was given already is not given again when there is more."""
    consumer.take(10)
    consumer.grant()
    consumer.take(4)
    consumer.take(11)
    consumer.grant()
    assert link.given == [(10, False), (1, False)]


def test_the_next_owner(consumer: Consumer, link: Link) -> None:
    """It gets the credit that was not used, regardless of the former one's."""
    consumer.take(10)
    consumer.grant()
    consumer.written(4, 10)
    consumer.attach(cast("Any", link), 0, [1, 2, 3, 4], again=True)
    assert link.attached == 6


def test_a_drain(consumer: Consumer, session: Session, link: Link) -> None:
    """It is answered when all that came of it is written, and the rest of the credit is gone."""
    consumer.take(10)
    drain = consumer.drain = Credit(1, "t", 10, True)
    consumer.grant()
    consumer.drained(7)
    assert session.answered == []
    consumer.written(3, 10)
    assert session.answered == [drain]
    consumer.take(5)
    consumer.grant()
    assert link.given == [(10, True), (2, False)]


def test_a_drain_is_taken_back(consumer: Consumer, session: Session, link: Link) -> None:
    """By other credit: it is answered, and its client, which knows that nothing was used up, can use all of it."""
    consumer.take(10)
    drain = consumer.drain = Credit(1, "t", 10, True)
    consumer.grant()
    consumer.take(20)
    consumer.grant()
    assert session.answered == [drain]
    consumer.drained(7)
    assert link.given == [(10, True), (10, False), (7, False)]


def test_a_drain_is_said_again(consumer: Consumer, session: Session, link: Link) -> None:
    """With every grant, since room for bytes may be what it waits for."""
    consumer.take(5)
    consumer.drain = Credit(1, "t", 5, True)
    consumer.grant()
    consumer.written(1, 100)
    consumer.grant()
    assert link.given == [(5, True), (0, True)]
    assert session.answered == []
