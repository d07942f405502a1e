"""Whose connection over HTTP makes room for whose."""

from __future__ import annotations

import pytest
import structlog

from services.mgmt.http.doors import Doors


class Peer:
    def __init__(self) -> None:
        self.closed = False

    def cut_off(self) -> None:
        self.closed = True


def peers(count: int) -> list[Peer]:
    return [Peer() for _ in range(count)]


async def test_who_takes_longest_makes_room() -> None:
    """The one that has asked for nothing for longest is closed for the next; the log says so once, and what to do."""
    doors, crowd = Doors(10, 0, 1000), peers(30)
    with structlog.testing.capture_logs() as logged:
        assert all(doors.come(each, f"10.0.0.{number}") for number, each in enumerate(crowd))
    assert [each.closed for each in crowd] == [True] * 20 + [False] * 10
    assert len(logged) == 1
    assert "HOPLINE_HTTP_MAX_CONNECTIONS," in logged[0]["do"]


async def test_who_waits_for_an_answer_stays() -> None:
    """Where all wait for the server the next is refused, until one of them is answered."""
    doors, crowd, late = Doors(3, 0, 1000), peers(3), Peer()
    for number, each in enumerate(crowd):
        doors.come(each, f"10.0.0.{number}")
        doors.server_s_turn(each)
    assert not doors.come(late, "10.0.0.9")
    doors.leave(late)
    doors.client_s_turn(crowd[1])
    assert doors.come(late, "10.0.0.9")
    assert (doors.inside, doors.limit, doors.ended) == (3, 3, {"refused": 1, "closed": 1})
    assert [each.closed for each in crowd] == [False, True, False]


async def test_of_one_address() -> None:
    """Who comes from an address with too many takes the place of its own, and is refused where they all wait."""
    doors, other, crowd = Doors(100, 5, 1000), Peer(), peers(20)
    assert doors.come(other, "10.0.0.1")
    with structlog.testing.capture_logs() as logged:
        for each in crowd:
            assert doors.come(each, "10.0.0.2")
    assert sum(not each.closed for each in crowd) == 5
    assert not other.closed
    assert "HOPLINE_HTTP_MAX_CONNECTIONS_EACH" in logged[0]["do"]
    for each in crowd[-5:]:
        doors.server_s_turn(each)
    assert not doors.come(Peer(), "10.0.0.2")
    assert doors.come(Peer(), "10.0.0.3")


async def test_an_address_that_has_none() -> None:
    """Gets a place of the one that has most, even where all wait for answers; no address loses its last one."""
    doors, single, crowd, late = Doors(4, 0, 1000), Peer(), peers(3), peers(3)
    for address, each in [("10.0.0.1", single), *(("10.0.0.2", each) for each in crowd)]:
        doors.come(each, address)
        doors.server_s_turn(each)
    came = []
    for number, each in enumerate(late):
        came.append(doors.come(each, f"10.0.1.{number}"))
        doors.server_s_turn(each)
    assert came == [True, True, False]
    assert [each.closed for each in (single, *crowd, *late)] == [False, True, True, False, False, False, False]
    assert doors.inside == 4


async def test_a_crowd_from_one_address() -> None:
    """Makes room itself, however long others take: who sends slowly is as much its client's turn."""
    doors, slow, crowd = Doors(10, 0, 1000), peers(3), peers(50)
    for number, each in enumerate(slow):
        doors.come(each, f"10.0.1.{number}")
    for each in crowd:
        assert doors.come(each, "10.0.0.1")
    assert not any(each.closed for each in slow)
    late = Peer()
    assert doors.come(late, "10.0.1.9")
    assert sum(not each.closed for each in crowd) == 6


async def test_a_crowd_that_waits_for_answers() -> None:
    """Takes nothing from who has less, and sends slowly: its next one is refused, and another's gets one of its own."""
    doors, slow, crowd = Doors(10, 0, 1000), Peer(), peers(9)
    doors.come(slow, "10.0.1.1")
    for each in crowd:
        doors.come(each, "10.0.0.1")
        doors.server_s_turn(each)
    assert not doors.come(Peer(), "10.0.0.1")
    assert doors.come(Peer(), "10.0.1.2")
    assert (slow.closed, [each.closed for each in crowd]) == (False, [True] + [False] * 8)


async def test_who_has_few_takes_from_nobody_who_has_as_few() -> None:
    """Its own connection that waits makes room, where nobody has more."""
    doors, first, other = Doors(2, 0, 1000), Peer(), Peer()
    doors.come(first, "10.0.0.1")
    doors.come(other, "10.0.0.2")
    assert doors.come(Peer(), "10.0.0.2")
    assert (first.closed, other.closed) == (False, True)


@pytest.mark.parametrize("stranger", [True, False])
async def test_a_crowd_behind_a_proxy(stranger: bool) -> None:
    """Of one address, one of the user that has most makes room; those that have not signed in count as one."""
    doors, slow, crowd = Doors(100, 5, 1000), Peer(), peers(20)
    doors.come(slow, "10.0.0.1")
    doors.signed_in(slow, "anna")
    for each in crowd:
        assert doors.come(each, "10.0.0.1")
        if not stranger:
            doors.signed_in(each, "mallory")
    assert not slow.closed
    assert sum(not each.closed for each in crowd) == 4


async def test_who_signs_in_while_it_is_the_server_s_turn() -> None:
    """Keeps it, and is counted once, whoever it was before; who is gone stays gone."""
    doors, one, other = Doors(2, 0, 1000), Peer(), Peer()
    doors.come(one, "10.0.0.1")
    doors.server_s_turn(one)
    for user in ("anna", "bert", "bert"):
        doors.signed_in(one, user)
    assert doors.come(other, "10.0.0.1")
    assert doors.come(Peer(), "10.0.0.1")
    assert (one.closed, other.closed) == (False, True)
    for each in (one, other):
        doors.leave(each)
        doors.signed_in(each, "anna")
        doors.client_s_turn(each)
    assert doors.inside == 1


async def test_addresses_of_one_network() -> None:
    """Addresses of IPv6 that one person can choose among are one."""
    doors, crowd = Doors(100, 2, 1000), peers(4)
    for number, each in enumerate(crowd):
        doors.come(each, f"2001:db8::{number:x}")
    assert [each.closed for each in crowd] == [True, True, False, False]


async def test_who_is_gone_takes_no_place() -> None:
    """However often connections come and go, there is room, and nothing is kept of their addresses."""
    doors = Doors(4, 2, 1000)
    for number in range(100):
        first, second = peers(2)
        assert doors.come(first, f"10.0.0.{number}")
        assert doors.come(second, f"10.0.0.{number}")
        doors.server_s_turn(first)
        doors.leave(first)
        doors.leave(second)
        doors.leave(second)
    assert doors.inside == 0


def test_as_files_allow() -> None:
    """Half of the files that may be open are for others; who wanted more is told at the start."""
    with structlog.testing.capture_logs() as logged:
        assert [Doors(0, 250, files).limit for files in (1024, 1 << 20)] == [512, 1000]
        assert not logged
        assert Doors(1000, 250, 1024).limit == 512
    assert logged[0]["do"] == "raise ulimit -n"
