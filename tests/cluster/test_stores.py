"""Two store processes on a database, on servers or on both: the one that writes is killed, or stands still; these die.

What befalls a database that has a standby is in `tests/compose/test_stores.py`.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.support.jetstream import Servers, alone, three
from tests.support.mixed_load import MixedLoad
from tests.support.postgres import Cluster, cluster
from tests.support.stack import Stack, running_stack, wait_until
from tests.support.took import Took

_PATIENCE = 60.0  # seconds; how long it takes is put down

# pika leaves the sockets of connections that failed to the garbage collector.
pytestmark = [
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning"),
    pytest.mark.timeout(500),
]

Harm = Callable[[Stack, MixedLoad], None]


@pytest.fixture
def on_a_database(tmp_path: Path) -> Iterator[Stack]:
    with cluster() as database, running_stack(tmp_path / "data", _settings(database.new_database())) as started:
        yield started


@pytest.fixture
def servers() -> Iterator[Servers]:
    with three() as started:
        yield started


@pytest.fixture
def on_servers(servers: Servers, tmp_path: Path) -> Iterator[Stack]:
    with running_stack(tmp_path / "data", _settings(servers.url())) as started:
        yield started


@pytest.fixture
def database() -> Iterator[Cluster]:
    with cluster() as started:
        yield started


@pytest.fixture
def on_both(database: Cluster, tmp_path: Path) -> Iterator[Stack]:
    """Configuration in the database, messages on a server."""
    with alone() as server:
        settings = {**_settings(server.url()), "HOPLINE_STORE_CONFIGURATION_URL": database.new_database()}
        with running_stack(tmp_path / "data", settings) as started:
            yield started


def _settings(url: str) -> dict[str, str]:
    return {"HOPLINE_STORE_URL": url, "HOPLINE_STORE_PROCESSES": "2"}


def _is_killed(stack: Stack, load: MixedLoad) -> None:
    """kill -9 of the process that writes."""
    former = _writer(stack)
    stack.kill(_service(former))
    _until_another_writes(stack, former)
    load.wait_for_progress()


def _stands_still(stack: Stack, load: MixedLoad) -> None:
    """It is stopped, with its connections, until another one writes; then it goes on, and has to end."""
    former = _writer(stack)
    pid = stack.pid(_service(former))
    os.kill(pid, signal.SIGSTOP)
    try:
        _until_another_writes(stack, former)
        load.wait_for_progress()
    finally:
        os.kill(pid, signal.SIGCONT)
    stack.wait_until_replaced(_service(former), pid)


def _servers_die(servers: Servers, which: slice, stack: Stack, load: MixedLoad) -> None:
    """kill -9: without one load goes on; without two it waits, as health says, and goes on when they are back."""
    dead = servers.each[which]
    for server in dead:
        server.kill()
    if len(dead) > 1:
        wait_until(lambda: stack.said_of("store") not in {"", "ok"}, _PATIENCE, "word of it")
    else:
        load.wait_for_progress()
    servers.start()
    load.wait_for_progress()


def test_on_a_database(on_a_database: Stack, name: str) -> None:
    """All that was confirmed comes, once, to each queue that it is for, over the connections that were there."""
    _befalls(on_a_database, name, [_is_killed, _stands_still])


def test_on_three_servers(on_servers: Stack, servers: Servers, name: str) -> None:
    """The same, with one of the servers down at any time, and two for a while."""
    die = [partial(_servers_die, servers, which) for which in (*(slice(n, n + 1) for n in range(3)), slice(2))]
    _befalls(on_servers, name, [_is_killed, _stands_still, *die])


def test_configuration_apart(on_both: Stack, database: Cluster, name: str) -> None:
    """The same, with configuration in a database, which goes away too: load does not notice that."""
    _befalls(on_both, name, [_is_killed, partial(_database_is_away, database), _stands_still])


def _database_is_away(database: Cluster, stack: Stack, load: MixedLoad) -> None:
    """Health says so, as soon as anything is to be changed, or before."""
    database.stop("immediate")
    wait_until(lambda: "configuration" in stack.said_of("store"), _PATIENCE, "word of it")
    load.wait_for_progress()
    database.start()
    wait_until(lambda: stack.said_of("store") == "ok", _PATIENCE, "word of its return")
    load.wait_for_progress()


def _befalls(stack: Stack, name: str, harms: list[Harm]) -> None:
    load = MixedLoad(stack.address, name)
    load.start()
    load.wait_for_progress()
    for harm in harms:
        took = Took(getattr(harm, "func", harm).__name__)
        harm(stack, load)
        took.put_down()
    stack.wait_until_healthy()
    load.finish()
    assert load.confirmed() > 0
    assert load.lost() == []
    assert load.broken_promises() == []
    assert load.reconnects() == 0
    assert load.doubled() == []


def _writer(stack: Stack) -> str:
    """The member that writes, once another stands by."""
    wait_until(lambda: sorted(_does(stack).values()) == ["stands by", "writes"], _PATIENCE, "process that stands by")
    return next(member for member, does in _does(stack).items() if does == "writes")


def _until_another_writes(stack: Stack, former: str) -> None:
    wait_until(
        lambda: {each for each, does in _does(stack).items() if does == "writes"} - {former}, _PATIENCE, "writer"
    )


def _does(stack: Stack) -> dict[str, str]:
    return stack.health().get("does", {})


def _service(member: str) -> str:
    """As the supervisor calls it: a member is named after that, and each start of it."""
    return "-".join(member.split("-")[:2])
