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
    """A member that is there no more is told of for five minutes, unless another has its address or it is back.

    The record is asked for those too whose address another has.
    """
    clock = Clock()
    roll = Roll(clock)
    roll.update("queue", {"queue-1-a": "q1", "queue-2-b": "q2", "queue-3-c": "q3"})
    roll.update("queue", {"queue-1-d": "q1"})
    clock.now = 40
    assert roll.gone("queue") == {"queue-1-a", "queue-2-b", "queue-3-c"}
    assert roll.states("queue", {"q1"}, {}) == {
        "queue-1-d": "ok",
        "queue-2-b": "gone for 40 s",
        "queue-3-c": "gone for 40 s",
    }
    roll.update("queue", {"queue-1-d": "q1", "queue-3-c": "q9"})
    clock.now = 301
    assert roll.states("queue", {"q1", "q9"}, {}) == {"queue-1-d": "ok", "queue-3-c": "ok"}


async def test_gateways() -> None:
    """Gateways are read from the routers' records, their addresses from their own; a whole that begins anew counts when
    all of it came.
    """

    def record(member: str, role: str = "gateway", *, deleted: bool = False) -> Record:
        value = json.dumps({"member": member, "role": role, "connections": f"{member[-1]}."}).encode()
        return Record(kind="watcher", key=member, value=b"" if deleted else value, deleted=deleted)

    def at(member: str, address: str) -> Record:
        return Record(kind="port_state", key=member, value=json.dumps({"address": address}).encode())

    seen: list[list[str]] = []

    async def told() -> AsyncIterator[Records]:
        both = [record("gateway-1"), record("queue-1-a", "queue"), Record(kind="watcher", key="odd", value=b"x")]
        yield Records(records=both, snapshot=True)
        seen.append(sorted(roll.there("gateway")))
        yield Records(records=[record("gateway-2")], snapshot=True, last=True)
        seen.append(sorted(roll.there("gateway")))
        yield Records(records=[record("gateway-1", deleted=True), record("gateway-3"), at("gateway-2", "g")])
        seen.append(sorted(roll.there("gateway")))
        yield Records(records=[Record(kind="port_state", key="gateway-3", value=b"x"), at("gateway-1", "g1")])

    roll = Roll(Clock())
    with capture_logs():
        await roll.follow_gateways(told())
    assert seen == [[], ["gateway-1", "gateway-2"], ["gateway-2", "gateway-3"]]
    assert roll.there("gateway") == {"gateway-2": "g", "gateway-3": ""}
    assert roll.said_of_ports == [{"address": "g"}]  # not of gateway-1, which has gone
    assert roll.states("gateway", {"g"}, {}) == {"gateway-2": "ok", "gateway-3": "ok", "gateway-1": "gone for 0 s"}


async def test_failed_starts_of_a_gateway() -> None:
    """Are one that is gone, with how the last one ended, and none once it serves: each says first where it will be."""

    def start(member: str) -> list[Record]:
        watcher = json.dumps({"role": "gateway", "connections": f"{member[-1]}."}).encode()
        where = json.dumps({"address": "g"}).encode()
        return [Record(kind="port_state", key=member, value=where), Record(kind="watcher", key=member, value=watcher)]

    async def told() -> AsyncIterator[Records]:
        yield Records(snapshot=True, last=True)
        for number in range(1, 5):
            yield Records(records=start(f"gateway-{number}"))
            seen.append(roll.states("gateway", set(), {}, {"g": "exit status 1"}))
            for kind in ("port_state", "watcher"):
                yield Records(records=[Record(kind=kind, key=f"gateway-{number}", deleted=True)])
            seen.append(roll.states("gateway", set(), {}, {"g": "exit status 1"}))
        yield Records(records=start("gateway-5"))

    roll = Roll(Clock())
    seen: list[dict[str, str]] = []
    await roll.follow_gateways(told())
    for number in range(1, 5):
        assert seen[2 * number - 2] == {f"gateway-{number}": "not serving: exit status 1"}
        assert seen[2 * number - 1] == {f"gateway-{number}": "gone for 0 s: exit status 1"}
    assert roll.states("gateway", {"g"}, {}) == {"gateway-5": "ok"}
    assert roll.said_of_ports == [{"address": "g"}]


async def test_gateways_in_the_order_in_which_they_came() -> None:
    """Of two at one address the later one is there, also where a whole comes by name."""

    async def told() -> AsyncIterator[Records]:
        for kind, value in (("watcher", {"role": "gateway"}), ("port_state", {"address": "g"})):
            for number in (10, 9):
                said = json.dumps({**value, "connections": f"{number}."}).encode()
                record = Record(kind=kind, key=f"gateway-{number}", value=said)
                yield Records(records=[record], snapshot=True, last=(kind, number) == ("port_state", 9))

    roll = Roll(Clock())
    await roll.follow_gateways(told())
    assert roll.states("gateway", {"g"}, {}) == {"gateway-9": "gone", "gateway-10": "ok"}


def test_how_a_former_one_ended() -> None:
    """That is said of the one that ended, however soon another is in its place, and never of that one."""
    roll = Roll(Clock())
    roll.update("router", {"router-x": "r", "router-z": "r", "router-a": "r"})
    its = {"router-x": "gone", "router-z": "gone: killed", "router-a": "not serving"}
    assert roll.states("router", set(), {}, {"r": "killed"}) == its
    assert roll.states("router", {"r"}, {}, {}, {"r": "killed"}) == {**its, "router-a": "ok"}
    roll.update("router", {"router-a": "r"})
    assert roll.states("router", set(), {}, {}, {"r": "killed"}) == {"router-a": "not serving"}
    assert roll.states("router", set(), {}, {"r": "killed again"}) == {"router-a": "not serving: killed again"}


def test_one_that_is_only_silent() -> None:
    """Of one that stands still until it counts as gone it is not said how the process before it ended."""
    roll = Roll(Clock())
    roll.update("queue", {"queue-1-a": "q"})
    roll.update("queue", {"queue-1-b": "q"})
    roll.update("queue", {})
    assert roll.states("queue", set(), {}, {}, {"q": "killed"}) == {"queue-1-b": "gone for 0 s"}


def test_one_that_ended_stands_there_once() -> None:
    """By its own name, and not by its program's as well."""
    roll = Roll(Clock())
    roll.update("gateway", {"gateway-7": "g"})
    assert roll.states("gateway", set(), {"gateway": "g"}, {"g": "killed"}) == {"gateway-7": "not serving: killed"}


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
