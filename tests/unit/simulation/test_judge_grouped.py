"""The judge and message groups: whose a group is, from when, until when."""

from __future__ import annotations

import pytest

from tests.simulation.choices import GROUPS
from tests.simulation.history import Consuming
from tests.support.written_history import Written

BROKEN = {"a group is one consumer's"}


class Grouped:
    """A queue with groups, two red messages in it, and two consumers on two channels."""

    def __init__(self, *, shared: bool, colour: str = "red", durable: bool = True) -> None:
        self.told = told = Written()
        told.change("queue", queue="q", durable=durable, arguments=GROUPS[shared])
        headers = {"colour": colour} if colour else {}
        self.sent = [told.publish(name, "q", headers=headers) for name in ("first", "second")]
        self.consumers = told.consumer("q", told.one), told.consumer("q", told.two)

    def deliver(self, number: int, consumer: Consuming, settled_as: str = "") -> None:
        self.told.deliver(self.sent[number], "q", settled_as, consumer=consumer, channel=consumer.channel)


@pytest.mark.parametrize("colour", ["red", ""])
def test_shared(colour: str) -> None:
    """None of a group comes to another while one holds some of it; those without a group are one."""
    grouped = Grouped(shared=True, colour=colour)
    grouped.deliver(0, grouped.consumers[0])
    grouped.deliver(1, grouped.consumers[1], "ack")
    assert grouped.told.broken() >= BROKEN


def test_shared_and_settled() -> None:
    """A consumer that holds nothing of a group any more does not have it any more."""
    grouped = Grouped(shared=True)
    grouped.deliver(0, grouped.consumers[0], "ack")
    grouped.deliver(1, grouped.consumers[1], "ack")
    assert grouped.told.broken() == set()


@pytest.mark.parametrize(("colour", "broken"), [("red", BROKEN), ("", set())])
def test_standard(colour: str, broken: set[str]) -> None:
    """None of a group comes to another as long as its consumer is there; those without a group are free."""
    grouped = Grouped(shared=False, colour=colour)
    grouped.deliver(0, grouped.consumers[0], "ack")
    grouped.deliver(1, grouped.consumers[1], "ack")
    assert grouped.told.broken() == broken


@pytest.mark.parametrize("shared", [True, False])
def test_whose_consumer_ends(*, shared: bool) -> None:
    """It is free from then on."""
    grouped = Grouped(shared=shared)
    grouped.deliver(0, grouped.consumers[0])
    grouped.consumers[0].ending = grouped.told.history.tick()
    grouped.deliver(1, grouped.consumers[1], "ack")
    grouped.told.drain(grouped.sent[0], "q", redelivered=True)
    assert BROKEN.isdisjoint(grouped.told.broken())


@pytest.mark.parametrize("durable", [True, False])
def test_whose_owner_dies(*, durable: bool) -> None:
    """What went with its owner binds its group no more; what the next owner read back does."""
    grouped = Grouped(shared=True, durable=durable)
    grouped.told.fault("kill", "queue-1")
    grouped.deliver(0, grouped.consumers[0])
    grouped.deliver(1, grouped.consumers[1], "ack")
    assert (grouped.told.broken() >= BROKEN) is durable


def test_while_a_gateway_cannot_tell() -> None:
    """A next owner that is not told what one holds cannot know whose the group is."""
    grouped = Grouped(shared=True)
    grouped.told.fault("pause", "gateway-1", seconds=1.0)
    grouped.deliver(0, grouped.consumers[0])
    grouped.deliver(1, grouped.consumers[1], "ack")
    assert BROKEN.isdisjoint(grouped.told.broken())
