"""Messages with long properties and hardly a body: what waits is no work again and again."""

from __future__ import annotations

from typing import Any

import pytest

from services.queue.machine.delivery.late import Late
from services.queue.machine.delivery.selective import SelectiveDelivery
from services.rpc import queue_pb2 as pb
from tests.contract.queue_types.test_choosing import settled_down, wanting
from tests.support.messages import PROPERTIES, facts
from tests.support.queue_machine import AMQP_0_9, Machine, Make

LONG = AMQP_0_9.with_headers(PROPERTIES, {"g": "a", "colour": "blue", "pad": "p" * 5000})
MANY = 500  # of which properties are more than a mebibyte
LATER = 1 << 40


def publish(machine: Machine, count: int, **said: Any) -> None:
    machine.publish_mixed([facts("q", **said)] * count, properties=[LONG] * count, body=b"")
    settled_down(machine)


def delivery(machine: Machine) -> SelectiveDelivery:
    found = machine.queue._delivery._selective
    assert found is not None
    return found


@pytest.mark.parametrize("said", [{"ttl_ms": LATER}, {"not_before": LATER}, {"ttl_ms": LATER, "not_before": LATER}])
def test_the_clock(make: Make, said: dict[str, int]) -> None:
    """It has nothing to do before the time of the first has come."""
    machine = make(table={"holdOnPublishEnabled": True})
    publish(machine, MANY, **said)
    assert machine.queue.deadline() == LATER


def test_waiting_for_who_chooses(make: Make) -> None:
    """The index is not gone through for each that comes."""
    machine = make()
    machine.consumer(interest=wanting("colour = 'red'"))
    publish(machine, MANY)
    rows = delivery(machine)._index._rows
    publish(machine, 1)
    assert delivery(machine)._index._rows is rows


def test_waiting_for_their_group(make: Make) -> None:
    """Nor is what others could not have."""
    machine = make(table={"qpid.group_header_key": "g"})
    for credit in (1, 10):
        machine.consumer(messages=credit)
    publish(machine, MANY)
    groups = delivery(machine)._groups
    assert groups is not None
    (its,) = groups._passed._by_group.values()  # type: ignore[attr-defined]
    publish(machine, 1)
    assert list(groups._passed._by_group.values()) == [its]  # type: ignore[attr-defined]
    assert next(iter(groups._passed._by_group.values())) is its  # type: ignore[attr-defined]


def test_back_behind_who_has_no_credit(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor is what came back, and is to be told."""
    machine = make()
    machine.consumer(interest=wanting("colour = 'blue'"), messages=MANY)
    publish(machine, MANY)
    monkeypatch.delattr(Late, "_latest")
    machine.queue.settle(pb.RELEASE, machine.link.uids(), 0)
    assert machine.queue.ready_count == MANY
