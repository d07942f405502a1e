"""What lies between hosts: links that delay, cut and tear, and pipes over them that carry things in order.

Everything that one process tells another goes through a pipe: bytes of sockets, of calls as well, and commands of NATS.
So all of it is delayed, held back and lost by the same faults.
"""

from __future__ import annotations

from collections import deque
from random import Random
from typing import Any, Protocol

from tests.simulation.world.loop import Handle, Loop
from tests.simulation.world.processes import Process
from tests.simulation.world.shape import Shape

USER_TIMEOUT = 5.0  # seconds for which a socket waits that what it sent is taken, then it gives the connection up
_KEEPALIVE = 15.0  # the same where nothing is on its way
_ASKS = 10.0  # seconds after which an end that hears nothing asks, and finds out that the other one gave up
_SLOWER = 100.0
_RESET_SHARE = 0.4  # of the connections that were cut: reset when the link is back


class End(Protocol):
    """One end of a connection, as the network sees it."""

    process: Process

    def arrived(self, item: Any) -> None:
        """In the order in which they were sent."""

    def broken(self, failure: Exception) -> None:
        """Nothing comes any more, and nothing that is sent arrives. Harmless when it has ended."""


class Link:
    """Between two hosts, or from one to itself."""

    def __init__(self, loop: Loop, random: Random, shape: Shape) -> None:
        self.cut_until = 0.0
        self.slow_until = 0.0
        self._deaf: dict[str, float] = {}  # host → until when nothing arrives there
        self.connections: dict[Connection, None] = {}
        self._loop = loop
        self._random = random
        self._shape = shape
        self._held: dict[Pipe, None] = {}

    @property
    def is_cut(self) -> bool:
        return self._loop.now < self.cut_until

    def holds_back(self, receiver: str) -> bool:
        """Whether nothing arrives at that end."""
        return self.is_cut or self._loop.now < self._deaf.get(receiver, 0.0)

    def delay(self) -> float:
        """Of one delivery."""
        draw, mean = self._random.random, self._shape.delay
        delay = mean * (0.35 + 1.3 * draw())
        if draw() < self._shape.spikes:
            delay *= 1 + 99 * draw()
        return delay * _SLOWER if self._loop.now < self.slow_until else delay

    def cut(self, seconds: float) -> None:
        """Nothing arrives for so long."""
        loop = self._loop
        self.cut_until = max(self.cut_until, loop.now + seconds)
        loop.at(self.cut_until, loop.kernel, self._mend)
        self._will_give_up()

    def deafen(self, receiver: str, seconds: float) -> None:
        """Nothing arrives at that end for so long; what it says does, and it does not hear that."""
        loop = self._loop
        self._deaf[receiver] = until = max(self._deaf.get(receiver, 0.0), loop.now + seconds)
        loop.at(until, loop.kernel, self._mend)
        self._will_give_up()

    def _will_give_up(self) -> None:
        loop = self._loop
        for wait, idle in ((USER_TIMEOUT, False), (_KEEPALIVE, True)):
            loop.after(wait * (1 + self._random.random() / 2), loop.kernel, self._give_up, idle)

    def heal(self) -> None:
        """Ends its faults."""
        self.slow_until = 0.0
        if self._is_disturbed:
            self.cut_until = self._loop.now
            self._deaf.clear()
            self._mend()
        for connection in list(self.connections):
            connection.ask()

    def tear(self) -> None:
        """Breaks what is connected."""
        for connection in list(self.connections):
            connection.tear(self._random)

    def holds(self, pipe: Pipe) -> None:
        """What is in the pipe waits for the end of the cut."""
        self._held[pipe] = None

    def _mend(self) -> None:
        if self._is_disturbed:
            return
        held, self._held = self._held, {}
        for pipe in held:
            pipe.go_on(self.delay() * 10 * self._random.random())
        for connection in list(self.connections):
            if any(pipe in held for pipe in connection.pipes) and self._random.random() < _RESET_SHARE:
                connection.tear(self._random)
            self._loop.after(_ASKS * self._random.random(), self._loop.kernel, connection.ask)

    @property
    def _is_disturbed(self) -> bool:
        return self.is_cut or any(self._loop.now < until for until in self._deaf.values())

    def _give_up(self, idle: bool) -> None:
        if self._is_disturbed:
            for connection in list(self.connections):
                connection.give_up(everybody=idle)


class Pipe:
    """One direction of a connection. Items arrive in order, all that is due at once."""

    def __init__(self, loop: Loop, link: Link, receiver: End) -> None:
        self.receiver = receiver
        self.items: deque[tuple[float, Any]] = deque()
        self._loop = loop
        self._link = link
        self._last = 0.0
        self._alarm: Handle | None = None

    def send(self, item: Any) -> None:
        """Nothing after it overtakes it."""
        now = self._loop.now
        when = now + self._link.delay()
        self._last = when = max(when, self._last)
        self.items.append((when, item))
        if self._alarm is None:
            self._arm(when)

    def go_on(self, delay: float) -> None:
        """The cut is over."""
        if self._alarm is None and self.items:
            self._arm(self._loop.now + delay)

    def _arm(self, when: float) -> None:
        self._alarm = self._loop.at(when, self.receiver.process, self._arrive)

    def _arrive(self) -> None:
        self._alarm = None
        if self._link.holds_back(self.receiver.process.name):
            self._link.holds(self)
            return
        items, now, receiver = self.items, self._loop.now, self.receiver
        while items and items[0][0] <= now:
            receiver.arrived(items.popleft()[1])
        if items and self._alarm is None:
            self._arm(items[0][0])


class Connection:
    """Two ends and the pipes between them; closed when both ends have ended."""

    def __init__(self, loop: Loop, link: Link, ends: tuple[End, End]) -> None:
        self.ends = ends
        self.link = link
        self.pipes = (Pipe(loop, link, ends[0]), Pipe(loop, link, ends[1]))  # to each end
        self._loop = loop
        self._open = [True, True]
        link.connections[self] = None

    def send(self, end: End, item: Any) -> None:
        """From `end` to the other one."""
        self.pipes[0 if end is self.ends[1] else 1].send(item)

    def ended(self, end: End) -> None:
        """`end` takes no more."""
        self._open[0 if end is self.ends[0] else 1] = False
        if not any(self._open):
            self.link.connections.pop(self, None)

    def died(self, end: End, random: Random, unheard: float = 0.0) -> None:
        """The process of `end` is gone: what it sent may have left it, the other end finds out when that has come.

        `unheard` seconds later, if it has to find out by itself.
        """
        other = 0 if end is self.ends[1] else 1
        pipe = self.pipes[other]
        if pipe.items and random.random() < 0.3:
            lose_tail(pipe, random)
        self.ended(end)
        if unheard:
            self._loop.after(unheard, self._loop.kernel, self._found_out, other)
        else:
            pipe.send(Reset)

    def _found_out(self, other: int) -> None:
        if self._open[other]:
            self.pipes[other].send(Reset)

    def tear(self, random: Random) -> None:
        """Both ends find out by themselves, each after what had arrived of what was on its way."""
        for number, pipe in enumerate(self.pipes):
            lose_tail(pipe, random)
            if self._open[number]:
                pipe.send(Reset)

    def ask(self) -> None:
        """An end that is left over is told so."""
        if self._open[0] != self._open[1]:
            self.pipes[0 if self._open[0] else 1].send(Reset)

    def give_up(self, *, everybody: bool) -> None:
        """Ends whose words are not taken find out; the others wait for something to come."""
        for number, end in enumerate(self.ends):
            if self._open[number] and (everybody or self.pipes[1 - number].items) and not end.process.dead:
                self._loop.soon(end.process, end.broken, TimeoutError(110, "connection timed out"))


class Reset:
    """Sent through a pipe when the connection is no more."""


def lose_tail(pipe: Pipe, random: Random) -> None:
    """Some of what is on its way is lost, from some point on, which may be in the middle of an item of bytes."""
    items = pipe.items
    keep = int(random.random() * (len(items) + 1))
    last = items[keep][1] if keep < len(items) else None
    when = items[keep][0] if keep < len(items) else 0.0
    while len(items) > keep:
        items.pop()
    if isinstance(last, bytes) and len(last) > 1 and random.random() < 0.7:
        items.append((when, last[: 1 + int(random.random() * (len(last) - 1))]))
