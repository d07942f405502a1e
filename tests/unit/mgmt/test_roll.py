from __future__ import annotations

import json
from collections.abc import AsyncIterator

from structlog.testing import capture_logs

from services.cli.health import health_lines
from services.mgmt.roll import Roll
from services.rpc.store_pb2 import Record, Records


class Clock:
    """Stands where it is put."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_who_is_gone() -> None:
    """A member that is there no more is told of for five minutes, unless another has its address or it is back."""
    clock = Clock()
    roll = Roll(clock)
    roll.update("queue", {"queue-1-a": "q1", "queue-2-b": "q2", "queue-3-c": "q3"})
    roll.update("queue", {"queue-1-d": "q1"})
    clock.now = 40
    assert roll.gone("queue") == {"queue-2-b", "queue-3-c"}
    assert roll.states("queue", {"q1"}, {}) == {
        "queue-1-d": "ok",
        "queue-2-b": "gone for 40 s",
        "queue-3-c": "gone for 40 s",
    }
    roll.update("queue", {"queue-1-d": "q1", "queue-3-c": "q9"})
    clock.now = 301
    assert roll.states("queue", {"q1", "q9"}, {}) == {"queue-1-d": "ok", "queue-3-c": "ok"}


async def test_gateways() -> None:
    """Gateways are read from the routers' records; a whole that begins anew counts when all of it came."""

    def record(member: str, role: str = "gateway", *, deleted: bool = False) -> Record:
        value = json.dumps({"member": member, "role": role, "connections": ""}).encode()
        return Record(kind="watcher", key=member, value=b"" if deleted else value, deleted=deleted)

    seen: list[list[str]] = []

    async def told() -> AsyncIterator[Records]:
        both = [record("gateway-1"), record("queue-1-a", "queue"), Record(kind="watcher", key="odd", value=b"x")]
        yield Records(records=both, snapshot=True)
        seen.append(sorted(roll.there("gateway")))
        yield Records(records=[record("gateway-2")], snapshot=True, last=True)
        seen.append(sorted(roll.there("gateway")))
        yield Records(records=[record("gateway-1", deleted=True), record("gateway-3")])
        seen.append(sorted(roll.there("gateway")))

    roll = Roll(Clock())
    with capture_logs():
        await roll.follow_gateways(told())
    assert seen == [[], ["gateway-1", "gateway-2"], ["gateway-2", "gateway-3"]]
    assert roll.states("gateway", set(), {}) == {"gateway-2": "ok", "gateway-3": "ok", "gateway-1": "gone for 0 s"}


def test_lines() -> None:
    """Each part has a line, and each member one below it; a name is shown as it is."""
    body = {
        "services": {"store": "ok", "queue": "ok"},
        "does": {"store-2-cd": "stands by"},
        "members": {"store": {"store-2-cd": "ok"}, "queue": {"queue-1-ab": "ok", "queue-\x1b": "not serving"}},
    }
    assert list(health_lines(body)) == [
        "store    ok",
        "  store-2-cd  ok, stands by",
        "queue    ok",
        "  queue-1-ab  ok",
        r"  queue-\x1b     not serving",
    ]
