"""Dead letters that some of their queues have taken, and that wait for the others for longer than anybody remembers."""

from __future__ import annotations

from typing import Any

import pytest

from services.common.clock import epoch_ms
from services.queue.dead_letters.office import DeadLetterOffice
from services.queue.machine.features import letters
from services.queue.machine.features.window import Span
from services.queue.partitions import partitions
from services.rpc import queue_pb2 as pb
from services.rpc.router_pb2 import Bind, ChangeRequest
from tests.support.queue_house import House
from tests.unit.queue.test_hand_over import another_owner


@pytest.fixture(autouse=True)
def forgetful(monkeypatch: pytest.MonkeyPatch) -> None:
    """Targets do not know any more which letters they have had."""
    monkeypatch.setattr(letters, "_SPAN", Span("letters", most=20_000, life_ms=0))


@pytest.fixture
def targets(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    """To which queues each letter was sent, each time."""
    found, publish = list[tuple[int, ...]](), DeadLetterOffice._publish

    def publishes(self: DeadLetterOffice, addressed: Any) -> None:
        found.extend(targets for _, targets in addressed)
        publish(self, addressed)

    monkeypatch.setattr(DeadLetterOffice, "_publish", publishes)
    return found


@pytest.mark.parametrize("dies", [True, False])
async def test_another_owner(
    house: House, monkeypatch: pytest.MonkeyPatch, targets: list[tuple[int, ...]], dies: bool
) -> None:
    """Sends them to the others alone, and is done with them once there are no others."""
    if dies:
        monkeypatch.setattr(partitions, "frames", lambda *_: ())
    source = await house.declare("source", durable=True, message_ttl=50, dead_letter_exchange="dlx")
    one = await house.declare("one", durable=True)
    full = await house.declare("full", durable=True, max_length=0, overflow="reject-publish")
    await house.declare_exchange("dlx", "one", "key")
    bind = Bind(source="dlx", destination="full", routing_key="key")
    await house.topology.change(ChangeRequest(virtual_host="/", bind=bind))
    link = await house.link()
    await link.publish(source, [b"1"], persistent=True, time_ms=epoch_ms())
    await link.until(lambda: (full,) in targets)
    await link.close()
    await another_owner(house)
    former, link = len(targets), await house.link(origin=1001)
    await link.until(lambda: len(targets) > former + 1)
    assert set(targets[former:]) == {(full,)}
    assert await link.ready(one, 1) == 1
    await link.send(requests=[pb.QueueRequest(id=2, delete=pb.DeleteRequest(queue_id=full))])
    office = house.queues["queue-1"]._partitions._office
    await link.until(lambda: not office._open)
    await another_owner(house)
    link = await house.link(origin=1002)
    assert [await link.ready(queue_id, at) for at, queue_id in enumerate((one, source), 1)] == [1, 0]
