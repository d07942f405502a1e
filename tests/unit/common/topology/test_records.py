"""Records of the topology, beside those of older releases."""

from __future__ import annotations

import json

import pytest

from services.common.topology.definitions import Host, Queue
from services.common.topology.life import ANY_LINK, NOBODY, PERMANENT, Life, Party, Scope, Unused
from services.common.topology.records import queue_record, read_queue, read_virtual_host, virtual_host_record


def test_virtual_hosts_from_before() -> None:
    """They have no id, and are read."""
    assert read_virtual_host(b'{"name": "/"}') == Host("/")


def test_a_virtual_host_made_again() -> None:
    """Is another one, in a record that has all that there was in one."""
    first, second = (virtual_host_record(Host("/", number)) for number in (1, 2))
    assert first != second
    assert json.loads(first.value) == {"name": "/", "id": 1}
    assert read_virtual_host(second.value) == Host("/", 2)


_SHARED = b'{"id": 3, "virtual_host": "/", "name": "q", "partition": 1, "durable": true, "exclusive_to": "", "auto_delete": false, "arguments": "{}", "type": "classic"}'  # noqa: E501 - as it was written
_OWN = _SHARED.replace(b'"exclusive_to": "", "auto_delete": false', b'"exclusive_to": "1.7", "auto_delete": true')


@pytest.mark.parametrize("written", [_SHARED, _OWN])
def test_queues_from_before(written: bytes) -> None:
    """Their records are read, and written again byte for byte."""
    queue = read_queue(written)
    assert queue_record(queue).value == written


def test_whose_queues_from_before_are() -> None:
    """An exclusive one is its connection's, and goes with it; one that goes with its last consumer does so."""
    assert read_queue(_SHARED).life == PERMANENT
    queue, connection = read_queue(_OWN), Party(Scope.CONNECTION, "1.7")
    assert (queue.owner, queue.life) == (connection, Life(connection, Unused.NO_CONSUMERS))


@pytest.mark.parametrize(
    ("owner", "until", "before"),
    [
        (Party(Scope.SESSION, "1.7/2"), Party(Scope.SESSION, "1.7/2"), "1.7"),
        (Party(Scope.CONTAINER, "app"), NOBODY, ""),
        (ANY_LINK, Party(Scope.CONNECTION, "1.7"), ""),
        (Party(Scope.CONNECTION, "1.7"), Party(Scope.SESSION, "1.7/2"), "1.7"),
    ],
)
def test_other_owners(owner: Party, until: Party, before: str) -> None:
    """Are kept; to a release before, a session's queue is its connection's, and one of no connection's is anybody's."""
    queue = Queue(3, "/", "q", 1, owner=owner, life=Life(until))
    record = queue_record(queue).value
    assert read_queue(record) == queue
    assert json.loads(record)["exclusive_to"] == before


@pytest.mark.parametrize("unused", [Unused.NO_LINKS, Unused.NO_MESSAGES, Unused.NO_LINKS_OR_MESSAGES])
@pytest.mark.parametrize("maker", [NOBODY, Party(Scope.LINK, "1.7/2/3")])
def test_what_links_have_made(unused: Unused, maker: Party) -> None:
    """Is kept, and whether that link is there; to a release before it goes with its last consumer, or stays."""
    queue = Queue(3, "/", "q", 1, life=Life(NOBODY, unused, maker))
    record = queue_record(queue).value
    assert read_queue(record) == queue
    assert json.loads(record)["auto_delete"] is (unused is Unused.NO_LINKS)
