"""A client that sends little is served while many send much."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from services.gateway.connections.activity import Activity
from services.gateway.connections.rest import Rest
from services.gateway.connections.turns import LITTLE, LONG, Turns
from services.gateway.vocabulary import Request
from tests.support.messages import kind, published

_MUCH = 64 << 10
_REQUESTS = 400  # in each portion


class _Engine:
    def __init__(self, portions: int) -> None:
        self.portions = portions
        self.effort = 0  # of each read, in microseconds

    @property
    def unread(self) -> bool:
        return self.portions > 0


class _Connection:
    """Tells `done` what it has carried out; what it sent comes in so many portions."""

    reads_much = False

    def __init__(self, turns: Turns, done: list[str], name: str, portions: int) -> None:
        self.rest = Rest(turns)
        self.engine = _Engine(portions)
        self.request = Request(1)
        self.requests = _REQUESTS
        self.lost = False
        self.last = Activity()
        self.holds: set[object] = set()
        self._done, self.name = done, name

    def carry_out_all(self, data: bytes) -> list[Request]:
        self._done.append(self.name)
        self.engine.portions = max(self.engine.portions - 1, 0)
        return [self.request] * (self.requests if data or self.engine.portions else min(self.requests, 1))

    def hold(self, reason: object) -> None:
        self.holds.add(reason)

    def release(self, reason: object) -> None:
        self.holds.discard(reason)

    def held_but(self, reason: object) -> bool:
        return bool(self.holds - {reason})

    def sends(self, size: int) -> None:
        self.rest.read(cast("Any", self), bytes(size))


async def test_who_sends_little_waits_for_nobody() -> None:
    """Of ten that send much in one turn three are carried out, then the one that sends little, then the others."""
    turns, done = Turns(), list[str]()
    crowd = [_Connection(turns, done, f"much {number}", 1) for number in range(10)]
    for each in crowd:
        each.sends(_MUCH)
    _Connection(turns, done, "little", 0).sends(LITTLE)
    assert done == ["much 0", "much 1", "much 2", "little"]
    assert [bool(each.holds) for each in crowd] == [False] * 3 + [True] * 7
    await asyncio.sleep(0)
    assert done[4:] == ["much 3", "much 4", "much 5"]
    for _ in range(3):
        await asyncio.sleep(0)
    assert done[7:] == ["much 6", "much 7", "much 8", "much 9"]
    assert not any(each.holds for each in crowd)


async def test_messages_count() -> None:
    """In however few requests: a client that publishes thousands at once spends the turn."""
    turns, done = Turns(), list[str]()
    crowd = [_Connection(turns, done, f"{number}", 1) for number in range(3)]
    for each in crowd:
        each.request = published([b""] * 10, kind())
        each.sends(_MUCH)
    assert done == ["0"]
    await asyncio.sleep(0)
    assert done == ["0", "1"]
    await asyncio.sleep(0)
    assert done == ["0", "1", "2"]


async def test_frames_count() -> None:
    """Also those that ask for nothing: what they have taken is spent, like what requests take."""
    turns, done = Turns(), list[str]()
    crowd = [_Connection(turns, done, f"{number}", 1) for number in range(3)]
    for each in crowd:
        each.requests, each.engine.effort = 0, 10_000
        each.sends(_MUCH)
    assert done == ["0"]
    await asyncio.sleep(0)
    assert done == ["0", "1"]


async def test_little_that_takes_long() -> None:
    """The next read of who has sent such counts, and waits like a large one, until one is short again."""
    turns, done = Turns(), list[str]()
    much, long, short = (_Connection(turns, done, name, 0) for name in ("much", "long", "short"))
    for each in (long, short):
        each.requests = 0
    long.engine.effort, short.engine.effort = LONG, LONG - 1
    long.sends(10)
    much.engine.effort = 10_000
    much.sends(_MUCH)
    for each in (long, short):
        each.sends(10)
    assert done == ["long", "much", "short"]
    long.engine.effort = 0
    await asyncio.sleep(0)
    assert done[3:] == ["long"]
    much.sends(_MUCH)
    long.sends(10)
    assert done[4:] == ["much", "long"]


async def test_little_is_not_spent() -> None:
    """A client that asks for little takes nothing of a turn."""
    turns, done = Turns(), list[str]()
    for _ in range(100):
        _Connection(turns, done, "little", 0).sends(10)
    assert not turns.over


async def test_portions_come_in_turn() -> None:
    """Of two that have more in one read than a portion, each waits for no more than one of the other's in between."""
    turns, done = Turns(), list[str]()
    for name in "ab":
        _Connection(turns, done, name, 3).sends(_MUCH)
    for _ in range(4):
        await asyncio.sleep(0)
    assert done == ["a", "a", "b", "a", "b", "b"]


async def test_who_is_held_goes_on_when_it_is_no_longer() -> None:
    """A portion waits as long as there is another reason to wait, and is forgotten when the connection is lost."""
    done = list[str]()
    held, lost = _Connection(Turns(), done, "held", 2), _Connection(Turns(), done, "lost", 2)
    for each in (held, lost):
        each.sends(_MUCH)
        each.hold("a queue is full")
    await asyncio.sleep(0)
    assert done == ["held", "lost"]
    lost.lost = True
    for each in (held, lost):
        each.release("a queue is full")
        each.rest.look(cast("Any", each))
    await asyncio.sleep(0)
    assert done == ["held", "lost", "held"]
