"""How long clients waited is worked out from when they asked and when they were served."""

from __future__ import annotations

import pytest

from tests.support.chaos.account import KILL, PAUSE, Account, Connection, Delivery, Disturbance, Message, MessageId
from tests.support.chaos.pauses import Pause, by_kind, longest, pauses


@pytest.fixture
def account() -> Account:
    return Account(
        connections={name: Connection(name, "gateway-1", 0.0) for name in ("producer-0.1", "consumer-0.1")},
        disturbances=[Disturbance(KILL, "queue-1", 10.0, 11.0), Disturbance(PAUSE, "queue-2", 20.0, 25.0)],
    )


def add(account: Account, published: float, confirmed: float, delivered: float) -> Message:
    number = len(account.messages)
    message = account.published(MessageId("producer-0.1", "q", number), published, published)
    message.confirmed = confirmed
    message.deliveries.append(Delivery(delivered, "consumer-0.1:q", "consumer-0.1", "q", redelivered=False))
    return message


def test_longest_waits(account: Account) -> None:
    """For each disturbance, from publish to confirm and from publish to delivery."""
    add(account, 1.0, 1.5, 1.25)
    add(account, 10.5, 12.5, 11.5)
    add(account, 11.0, 11.5, 13.5)
    assert pauses(account) == [
        (None, Pause(0.5, 0.25)),
        (account.disturbances[0], Pause(2.0, 2.5)),
        (account.disturbances[1], Pause()),
    ]
    assert longest(account) == Pause(2.0, 2.5)


def test_wait_over_two_disturbances(account: Account) -> None:
    """A wait belongs to the disturbance in whose time most of it falls."""
    add(account, 9.5, 12.5, 9.75)
    add(account, 18.0, 21.0, 18.25)
    assert [pause.confirm for _, pause in pauses(account)] == [0.0, 3.0, 0.0]


def test_reconnected(account: Account) -> None:
    """The wait of a client that had to connect again counts from its first attempt, and apart from the others'."""
    message = add(account, 13.0, 13.5, 14.0)
    message.waits_since = 10.0
    account.connections["consumer-0.1"].opened = 11.0
    add(account, 10.5, 10.75, 11.5)
    assert longest(account) == Pause(reconnected=4.0)


def test_by_kind(account: Account) -> None:
    """Disturbances of one kind and service are one row."""
    account.disturbances.append(Disturbance(KILL, "queue-3", 30.0, 31.0))
    add(account, 10.5, 11.5, 10.75)
    add(account, 30.5, 32.5, 30.75)
    assert by_kind(account)["kill queue"] == Pause(2.0, 0.25)
