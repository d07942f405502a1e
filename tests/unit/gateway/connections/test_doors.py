"""How many may be connected, and how many on their way in."""

from __future__ import annotations

from typing import Any

import pytest
import structlog

from services.common.errors import NotAllowed
from services.gateway.connections.doors import Doors


class Peer:
    def __init__(self) -> None:
        self.closed = False

    def cut_off(self) -> None:
        self.closed = True


def peers(count: int) -> list[Any]:
    return [Peer() for _ in range(count)]


def test_as_many_as_files_allow() -> None:
    """Nine tenths of the files that are not the gateway's own are for clients, the rest for handshakes."""
    doors = Doors(0, 10_128)
    assert (doors.limit, doors.sockets) == (9000, 9900)


@pytest.mark.parametrize("count", [0, 1, 128, 256, 1024, 1 << 20])
def test_there_is_always_room_for_both(count: int) -> None:
    """With few files a client can still connect, and be refused."""
    doors = Doors(0, count)
    assert 0 < doors.limit < doors.sockets <= max(count - 128, 2)


def test_more_than_files_allow() -> None:
    """A limit of connections above that of files is reported at the start."""
    with structlog.testing.capture_logs() as logged:
        assert Doors(5000, 1128).limit == 900
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
