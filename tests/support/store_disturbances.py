"""What may befall the store of a stack in containers while load goes on: its processes, and the servers that keep it.

Each disturbance returns when load has gone on without what was disturbed, and that is back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from tests.support.cluster_load import Load
from tests.support.compose_stack import ComposeStack, docker
from tests.support.stack import wait_until

SECONDS = 60.0
LEADER = (Path(__file__).parents[1] / "compose/leader.py").read_text()
SERVERS = ("store-nats-1", "store-nats-2", "store-nats-3")


class Disturbance(NamedTuple):
    """What befalls, and what does it."""

    what: str
    do: Callable[[ComposeStack, Load], None]


# ------------------------------------------------------------------ the processes of a store


def writer_is_killed(stack: ComposeStack, load: Load) -> None:
    """kill -9 of the container whose process writes."""
    former = _writer(stack)
    docker("kill", former)
    _until_another_writes(stack, former)
    load.wait_for_progress()
    stack.up()


def other_is_killed(stack: ComposeStack, load: Load) -> None:
    """The same of the one that stands by."""
    [other] = set(stack.containers("store")) - {_writer(stack)}
    docker("kill", other)
    load.wait_for_progress()
    stack.up()


def writer_stands_still(stack: ComposeStack, load: Load) -> None:
    """Its processes stop, with their connections, until another one writes; then they go on, and it has to end."""
    former = _writer(stack)
    docker("pause", former)
    _until_another_writes(stack, former)
    load.wait_for_progress()
    docker("unpause", former)
    _until_started_again(stack, former)


def writer_is_cut_off(stack: ComposeStack, load: Load) -> None:
    """It is taken off the network until another one writes."""
    former = _writer(stack)
    stack.cut(former)
    _until_another_writes(stack, former)
    load.wait_for_progress()
    stack.join(former, "store")
    _until_started_again(stack, former)


def _writer(stack: ComposeStack) -> str:
    """The container of the process that writes, once another one stands by."""
    wait_until(lambda: stands_by(stack), SECONDS, "store process that stands by")
    [writer] = stack.writing_stores()
    return writer


def stands_by(stack: ComposeStack) -> bool:
    """Whether mgmt says that one store process writes, and another one stands by."""
    return sorted(stack.health().get("does", {}).values()) == ["stands by", "writes"]


def _until_another_writes(stack: ComposeStack, former: str) -> None:
    wait_until(lambda: stack.writing_stores() - {former}, SECONDS, "other store process that writes")


def _until_started_again(stack: ComposeStack, former: str) -> None:
    """The one that was shut out ends, and Docker starts it."""

    def stands_by_again() -> bool:
        return former not in stack.writing_stores() and stands_by(stack)

    wait_until(stands_by_again, SECONDS, "former writer that stands by")
    stack.up()


def all_are_killed(servers: Sequence[str], stack: ComposeStack, load: Load) -> None:
    """kill -9 of all store processes and of what keeps the store, as when a machine loses its power."""
    docker("kill", *(each for name in ("store", *servers) for each in stack.containers(name)))
    stack.up()
    load.wait_for_progress()


# ------------------------------------------------------------------ PostgreSQL: a primary and its synchronous standby


def primary_is_killed(primary: str, standby: str, stack: ComposeStack, load: Load) -> None:
    """kill -9, and the standby is promoted; the former primary follows it when it is back."""
    _until_waited_for(stack, primary)
    docker("kill", stack.containers(primary)[0])
    assert f"{standby} is the primary" in docker("exec", stack.containers(standby)[0], "promote")
    load.wait_for_progress()
    stack.up()
    _until_waited_for(stack, standby)


def standby_is_killed(primary: str, standby: str, stack: ComposeStack, load: Load) -> None:
    """kill -9: confirms wait until it is back."""
    _until_waited_for(stack, primary)
    docker("kill", stack.containers(standby)[0])
    stack.up()
    _until_waited_for(stack, primary)
    load.wait_for_progress()


def _until_waited_for(stack: ComposeStack, primary: str) -> None:
    asked = "SELECT sync_state FROM pg_stat_replication WHERE state = 'streaming'"
    command = ("psql", "-h", "/tmp", "-U", "admin", "-d", "hopline", "-XAtc", asked)

    def is_waited_for() -> bool:
        return docker("exec", stack.containers(primary)[0], *command, check=False).strip() == "sync"

    wait_until(is_waited_for, SECONDS, "synchronous standby")


# ------------------------------------------------------------------ JetStream: three servers, of which two have it


def leader_is_killed(stack: ComposeStack, load: Load) -> None:
    """kill -9 of the server that leads the stream."""
    server_is_killed(_leader(stack), stack, load)


def leader_stands_still(stack: ComposeStack, load: Load) -> None:
    """It stops, with its connections, until load has gone on."""
    [leader] = stack.containers(_leader(stack))
    docker("pause", leader)
    load.wait_for_progress()
    docker("unpause", leader)
    load.wait_for_progress()


def _leader(stack: ComposeStack) -> str:
    return docker("exec", _writer(stack), "python3", "-c", LEADER).strip()


def server_is_killed(server: str, stack: ComposeStack, load: Load) -> None:
    """kill -9 of one server: the others go on."""
    docker("kill", stack.containers(server)[0])
    load.wait_for_progress()
    stack.up()


def two_are_killed(stack: ComposeStack, load: Load) -> None:
    """kill -9 of two servers: confirms wait until one is back, and health says what is wrong."""
    for server in SERVERS[:2]:
        docker("kill", stack.containers(server)[0])
    wait_until(lambda: stack.said_of("store") not in {"", "ok"}, SECONDS, "word of it")
    stack.up()
    load.wait_for_progress()


_BACK_AND_FORTH = (("postgres", "postgres-standby"), ("postgres-standby", "postgres"))
_WRITER = Disturbance("the store process that writes is killed", writer_is_killed)
_PROCESSES = [
    _WRITER,
    Disturbance("the store process that stands by is killed", other_is_killed),
    Disturbance("the store process that writes stands still", writer_stands_still),
    Disturbance("the store process that writes is cut off", writer_is_cut_off),
]
_PRIMARIES = [
    Disturbance(f"{primary} is killed, {standby} promoted", partial(primary_is_killed, primary, standby))
    for primary, standby in _BACK_AND_FORTH
]
_STANDBY = Disturbance("the primary's standby is killed", partial(standby_is_killed, *_BACK_AND_FORTH[0]))
_LEADER = Disturbance("the server that leads the stream is killed", leader_is_killed)
_EACH = [Disturbance(f"{server} is killed", partial(server_is_killed, server)) for server in SERVERS]
_STILL = Disturbance("the server that leads the stream stands still", leader_stands_still)
_TWO = Disturbance("two servers are killed", two_are_killed)


def _power(*servers: str) -> Disturbance:
    return Disturbance("all of the store is killed", partial(all_are_killed, servers))


BRIEFLY = {"postgres": [_WRITER, *_PRIMARIES], "jetstream": [_WRITER, _LEADER]}
"""What everyone who changes something waits for."""

THOROUGHLY = {
    "postgres": [*_PROCESSES, *_PRIMARIES, _STANDBY, _power(*_BACK_AND_FORTH[0])],
    "jetstream": [*_PROCESSES, _LEADER, _STILL, *_EACH, _TWO, _power(*SERVERS)],
}
"""What takes minutes."""
