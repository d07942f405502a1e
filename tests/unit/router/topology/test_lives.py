"""Whose queues are alone, and until when they are there, as Broker-J's words say it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from services.common.errors import PreconditionFailed, ResourceLocked
from services.common.message import arguments
from services.common.topology.definitions import Queue
from services.router.topology.effects import Effects
from services.router.wire import queue_message
from tests.support.topology_bench import Bench, new_topology, request

OWNER, LIFE = "qpid.exclusivity_policy", "qpid.lifetime_policy"
ME = {"connection": "c1", "session": "1", "container": "app", "principal": "me"}
"""Who declares; below, who differs in one."""


def ask(bench: Bench, kind: str, whose: dict[str, str], **fields: Any) -> Any:
    """As `Bench.do`, by somebody."""
    change = request(kind, **fields)
    for name, value in whose.items():
        setattr(change, name, value)
    bench.effects = Effects()
    return bench.topology.change(change, bench.effects)


def declared(bench: Bench, whose: dict[str, str] = ME, name: str = "q", **arguments: Any) -> Queue:
    """A queue, with arguments alone."""
    queue: Queue = ask(bench, "declare_queue", whose, name=name, arguments=arguments).queue
    return queue


@pytest.mark.parametrize(
    ("policy", "others", "too"),
    [
        ("SESSION", {"session": "2"}, {"principal": "you"}),
        ("CONNECTION", {"connection": "c2"}, {"session": "2"}),
        ("CONTAINER", {"container": "another"}, {"connection": "c2"}),
        ("PRINCIPAL", {"principal": "you"}, {"connection": "c2"}),
        ("PRINCIPAL_CONTAINER", {"principal": "you"}, {"connection": "c2"}),
        ("PRINCIPAL_CONTAINER", {"container": "another"}, {"session": "2"}),
    ],
)
def test_owners(bench: Bench, policy: str, others: dict[str, str], too: dict[str, str]) -> None:
    """Who is somebody else in what the policy names may neither declare, bind nor delete it; all others may."""
    queue = declared(bench, **{OWNER: policy})
    assert declared(bench, ME | too, **{OWNER: policy}) == queue
    for kind, fields in [
        ("declare_queue", {"name": "q", "arguments": {OWNER: policy}}),
        ("bind", {"source": "amq.direct", "destination": "q"}),
        ("delete_queue", {"name": "q"}),
    ]:
        with pytest.raises(ResourceLocked):
            ask(bench, kind, ME | others, **fields)
    ask(bench, "delete_queue", ME | too, name="q")
    assert not bench.topology.queues


@pytest.mark.parametrize(
    ("policies", "flags"),
    [
        ({OWNER: "CONTAINER"}, {}),
        ({OWNER: "SESSION", LIFE: "PERMANENT"}, {}),
        ({LIFE: "DELETE_ON_NO_LINKS"}, {}),
        ({OWNER: "NONE"}, {"exclusive": True}),
        ({LIFE: "PERMANENT"}, {"auto_delete": True}),
    ],
)
def test_of_a_former_release(bench: Bench, policies: dict[str, str], flags: dict[str, bool]) -> None:
    """To which these arguments meant nothing: its client declares it again at each start, and finds it."""
    before = ask(bench, "declare_queue", ME, name="q", **flags).queue
    known = replace(before, arguments=arguments.dump(policies))
    state = bench.topology._state
    state.queues[before.id] = state.host("/").queues["q"] = known
    assert ask(bench, "declare_queue", ME, name="q", arguments=policies, **flags).queue == known
    others = {"auto_delete": not flags.get("auto_delete", False)}
    with pytest.raises(PreconditionFailed):
        ask(bench, "declare_queue", ME, name="q", arguments=policies, **{**flags, **others})


def test_of_links(bench: Bench) -> None:
    """It is nobody's until somebody consumes: gateways see to it that this is one."""
    queue = declared(bench, **{OWNER: "LINK"})
    assert declared(bench, ME | {"connection": "c2"}, **{OWNER: "LINK"}) == queue
    assert (queue_message(queue).owner.scope, queue_message(queue).exclusive_to) == ("link", "")


@pytest.mark.parametrize(
    ("arguments", "outlives_session"),
    [
        ({LIFE: "DELETE_ON_SESSION_END"}, False),
        ({OWNER: "SESSION"}, False),
        ({OWNER: "SESSION", LIFE: "DELETE_ON_CONNECTION_CLOSE"}, False),
        ({OWNER: "CONNECTION"}, True),
        ({LIFE: "DELETE_ON_CONNECTION_CLOSE"}, True),
    ],
)
def test_ends(bench: Bench, arguments: dict[str, str], outlives_session: bool) -> None:
    """What goes with a session goes with no other one, and with its connection at the latest."""
    for close, there in (({"session": "2"}, True), ({"session": "1"}, outlives_session)):
        declared(bench, **arguments)
        declared(bench, name="stays")
        ask(bench, "close_session", ME | close)
        assert ("q" in bench.topology.virtual_hosts["/"].queues) is there
    declared(bench, **arguments)
    ask(bench, "close_connection", {"connection": "c1"})
    assert [queue.name for queue in bench.topology.queues.values()] == ["stays"]


def test_with_a_gateway(bench: Bench) -> None:
    """Sessions of connections that are gone without a word are gone as well."""
    declared(bench, **{OWNER: "SESSION"})
    bench.topology.close(list(bench.topology.owners), Effects())
    assert not bench.topology.queues


@pytest.mark.parametrize("policy", ["DELETE_ON_NO_LINKS", "DELETE_ON_NO_OUTBOUND_LINKS"])
def test_no_links(bench: Bench, policy: str) -> None:
    """As 0-9-1's auto-delete: declared again it is the same."""
    queue = declared(bench, **{LIFE: policy})
    assert queue.auto_delete
    assert declared(bench, **{LIFE: policy}) == queue
    with pytest.raises(PreconditionFailed, match="auto_delete"):
        declared(bench)


@pytest.mark.parametrize(
    ("flags", "arguments", "name"),
    [
        ({"exclusive": True}, {OWNER: "NONE"}, "exclusive"),
        ({"exclusive": True}, {OWNER: "SESSION"}, "exclusive"),
        ({"exclusive": True}, {LIFE: "PERMANENT"}, "lifetimePolicy"),
        ({"auto_delete": True}, {LIFE: "PERMANENT"}, "lifetimePolicy"),
        ({}, {OWNER: "SESSION", LIFE: "PERMANENT"}, "lifetimePolicy"),
    ],
)
def test_contradictions(bench: Bench, flags: dict[str, bool], arguments: dict[str, str], name: str) -> None:
    """Are refused, and what says so is named."""
    with pytest.raises(PreconditionFailed, match=f"invalid arg '{name}'"):
        bench.queue("q", arguments=arguments, **flags)
    assert not bench.topology.queues


def test_the_broker_has_no_session(bench: Bench) -> None:
    """A queue that is to go with one needs one."""
    with pytest.raises(PreconditionFailed, match="needs a session"):
        ask(bench, "declare_queue", {"connection": ""}, name="q", arguments={OWNER: "SESSION"})


MINE = ME | {"link": "7"}


def made(bench: Bench, lifetime: str, **flags: Any) -> Queue:
    """A queue of a link, with such a lifetime."""
    queue: Queue = ask(bench, "declare_queue", MINE, lifetime=lifetime, **flags).queue
    return queue


ENDS = [
    ("close_link", {"link": "7"}, {"link": "70"}),
    ("close_session", {"link": ""}, {"session": "12", "link": ""}),
    ("close_connection", {"link": ""}, {"connection": "c11", "session": "", "link": ""}),
]
"""How a link ends: by itself or with what it is a part of; and what ends likewise, and is another."""


@pytest.mark.parametrize(("end", "its", "another"), ENDS)
def test_a_queue_of_a_link(bench: Bench, end: str, its: dict[str, str], another: dict[str, str]) -> None:
    """With delete-on-close goes with that link, whoever uses it."""
    queue = made(bench, "link")
    ask(bench, end, ME | another)
    assert queue.id in bench.topology.queues
    ask(bench, end, ME | its)
    assert not bench.topology.queues
    assert not list(bench.topology.owners)


@pytest.mark.parametrize("lifetime", ["no-links", "no-messages", "no-links-or-messages"])
@pytest.mark.parametrize(("end", "its", "another"), ENDS)
def test_a_queue_that_outlives_its_link(
    bench: Bench, end: str, its: dict[str, str], another: dict[str, str], lifetime: str
) -> None:
    """Its owner is told when nobody keeps it any more, and decides."""
    queue = made(bench, lifetime)
    assert (queue_message(queue).unused, queue_message(queue).kept) == (lifetime, True)
    ask(bench, end, ME | another)
    assert bench.effects.news.queues == {}
    ask(bench, end, ME | its)
    told = queue_message(bench.effects.news.queues[queue.id])
    assert (told.id, told.unused, told.kept) == (queue.id, lifetime, False)
    assert not list(bench.topology.owners)
    after = new_topology()
    after.restore((key.kind, key.key, record.value) for key, record in bench.topology.all_records())
    assert after.queues == bench.topology.queues


def test_another_router(bench: Bench) -> None:
    """That takes over knows which links keep queues, and of which that is over."""
    follower = new_topology()
    follower.restore((key.kind, key.key, record.value) for key, record in bench.topology.all_records())
    for change, owners in (("declare_queue", ["c1"]), ("close_link", [])):
        ask(bench, change, MINE, **({"lifetime": "no-messages"} if change == "declare_queue" else {}))
        records = bench.effects.records.items()
        follower.replay((key.kind, key.key, record.value if record else None) for key, record in records)
        assert (follower.queues, list(follower.owners)) == (bench.topology.queues, owners)


def test_an_exclusive_queue_of_a_link(bench: Bench) -> None:
    """Goes with its connection, whatever is in it: nobody else could use it."""
    made(bench, "no-messages", exclusive=True)
    ask(bench, "close_link", MINE)
    assert bench.topology.queues
    ask(bench, "close_connection", {"connection": "c1"})
    assert not bench.topology.queues


def test_no_link_makes_it(bench: Bench) -> None:
    """Who asks for such a lifetime is a link."""
    with pytest.raises(PreconditionFailed, match="link"):
        ask(bench, "declare_queue", ME, lifetime="no-links")
