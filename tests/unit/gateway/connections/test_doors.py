"""How many may be connected, and how many on their way in."""

from __future__ import annotations

from typing import Any

import pytest
import structlog

from services.common.errors import NotAllowed
from services.common.streams.newcomers import most_of
from services.gateway.connections.doors import Doors


class Peer:
    def __init__(self, host: str) -> None:
        self.peer_host = host
        self.closed = False

    def cut_off(self) -> None:
        self.closed = True


def peers(count: int, host: str = "192.0.2.1") -> list[Any]:
    return [Peer(host) for _ in range(count)]


def test_as_many_as_files_allow() -> None:
    """Nine tenths of the files that are not the gateway's own are for clients, the rest for handshakes."""
    doors = Doors(0, 10_384)
    assert (doors.limit, doors.sockets) == (9000, 9900)


@pytest.mark.parametrize("count", [0, 1, 128, 256, 1024, 1 << 20])
def test_there_is_always_room_for_both(count: int) -> None:
    """With few files a client can still connect, and be refused; strangers at gRPC have files of their own."""
    doors = Doors(0, count)
    assert 0 < doors.limit < doors.sockets <= max(count - 128 - most_of(count), 2)


def test_more_than_files_allow() -> None:
    """A limit of connections above that of files is reported at the start."""
    with structlog.testing.capture_logs() as logged:
        assert Doors(5000, 1203).limit == 900
    assert logged[0]["wanted"] == 5000


def test_the_limit() -> None:
    """One more than the limit is refused with 530, and let in when another one has gone; the log says it once."""
    doors, (first, *others) = Doors(2, 1024), peers(5)
    for each in (first, *others):
        doors.come(each)
    doors.enter(first)
    doors.enter(others[0])
    with structlog.testing.capture_logs() as logged:
        for each in others[1:]:
            with pytest.raises(NotAllowed, match=r"limit of connections \(2\)"):
                doors.enter(each)
    assert len(logged) == 1
    doors.leave(first)
    doors.enter(others[1])


def test_who_takes_longest_makes_room() -> None:
    """Peers that never sign in take no place from those that do; open connections stay."""
    doors = Doors(10, 1024)
    clients, idle = peers(10), peers(doors.sockets * 3)
    for each in clients:
        doors.come(each)
        doors.enter(each)
    with structlog.testing.capture_logs() as logged:
        for each in idle:
            doors.come(each)
    room = doors.sockets - len(clients)
    assert [each.closed for each in idle] == [True] * (len(idle) - room) + [False] * room
    assert not any(each.closed for each in clients)
    assert len(logged) == 1
    doors.leave(clients[0])
    [late] = peers(1)
    doors.come(late)
    doors.enter(late)


def test_a_flood_from_one_address() -> None:
    """Makes room itself, however fast it comes: handshakes of others that are slow end all the same."""
    doors, slow = Doors(10, 1024), peers(3, "192.0.2.9")
    for each in slow:
        doors.come(each)
    for each in peers(doors.sockets * 3):
        doors.come(each)
    assert not any(each.closed for each in slow)
    for each in slow:
        doors.enter(each)
    assert doors.coming + doors.inside == doors.sockets


def test_a_flood_through_a_balancer() -> None:
    """Counts by the addresses that the balancer has told."""
    doors, slow, flood = Doors(10, 1024), peers(3, "10.0.0.1"), peers(200, "10.0.0.1")
    for number, each in enumerate(slow):
        doors.come(each)
        each.peer_host = f"192.0.2.{number}"
    for each in flood:
        doors.come(each)
        each.peer_host = "192.0.2.9"
    assert not any(each.closed for each in slow)
    assert doors.coming == doors.sockets
    for each in (*slow, *flood):
        doors.leave(each)
    assert doors.coming == 0
    assert doors._waiting.longest() is None
