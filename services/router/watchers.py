"""Who routes by this topology: every watcher has a place, and a change waits for each place.

A place outlives its stream by `place_ttl`: a gateway that reconnects in time finds what it owned untouched, and one
that is silent for longer has stopped routing from its cache, so that nothing has to wait for it any more.
"""

from __future__ import annotations

import asyncio
import heapq
import json
import math
from collections.abc import Collection
from dataclasses import dataclass, field

from services.common.clock import Clock
from services.common.topology.records import Record, RecordKey
from services.common.watchers import RECORD_KIND
from services.router.topology.effects import News

_QUEUE = "queue"  # as queue processes say


@dataclass(slots=True, eq=False)
class Attachment:
    """One stream of a watcher: what it must still be told."""

    version: int
    awaited: int = 0  # the last version whose acknowledgement is waited for
    news: News = field(default_factory=News)
    beat_ms: int = 0  # to be echoed
    evaluates: bool = False  # is told exchanges and bindings too
    ended: bool = False
    wake: asyncio.Event = field(default_factory=asyncio.Event)

    def end(self) -> None:
        """Its stream closes, and the watcher attaches again if it still lives."""
        self.ended = True
        self.wake.set()


@dataclass(slots=True, eq=False)
class ExpectedWatcher:
    """One watcher, attached or expected back."""

    member: str
    role: str
    connections: str  # prefix of the connection names that die with it
    acknowledged: int = 0
    until: float = math.inf
    attachment: Attachment | None = None
    needs: float = math.inf  # the last version with something for it; unknown until it attaches
    is_cut_off: bool = False  # its stream broke, and it has opened no other

    def is_concerned(self, news: News) -> bool:
        """Whether there is anything in it for this watcher: queue processes keep no routes."""
        return self.role != _QUEUE or news.concerns_queues

    @property
    def behind(self) -> float:
        """The version from which on a change has to wait for it."""
        keeps_routes = self.role != _QUEUE
        return self.acknowledged if keeps_routes or self.acknowledged < self.needs else math.inf


def place_key(place: ExpectedWatcher) -> RecordKey:
    return RecordKey(RECORD_KIND, place.member)


def place_record(place: ExpectedWatcher) -> Record:
    """Lets the next router know for whom it must wait."""
    table = {"member": place.member, "role": place.role, "connections": place.connections}
    # On disk: when store and router go down together, the next router must know who may still route as before.
    return Record(json.dumps(table).encode(), transient=False)


def read_place(value: bytes) -> ExpectedWatcher:
    return ExpectedWatcher(**json.loads(value))


class Watchers:
    """All places; `clock` is monotonic."""

    def __init__(self, ttl: float, clock: Clock) -> None:
        self._ttl = ttl
        self._clock = clock
        self._places: dict[str, ExpectedWatcher] = {}
        self._waiting: dict[str, list[tuple[int, int, asyncio.Future[None]]]] = {}  # by who asks
        self._ticket = 0

    # -------------------------------------------------------------- places

    def find(self, member: str) -> ExpectedWatcher | None:
        return self._places.get(member)

    def expect(self, place: ExpectedWatcher) -> None:
        """A watcher that the former router knew; it counts from when `renew_all` is called."""
        self._places[place.member] = place

    def attach(self, place: ExpectedWatcher, version: int) -> Attachment:
        """The place's new stream, which has been told everything up to `version`; an older stream ends."""
        if place.attachment:
            place.attachment.end()
        place.attachment, place.is_cut_off = Attachment(version), False
        place.needs = version
        place.until = self._clock() + self._ttl
        self._places[place.member] = place
        return place.attachment

    def detach(self, place: ExpectedWatcher, attachment: Attachment) -> None:
        """The stream broke; the place stays until it runs out."""
        if place.attachment is attachment:
            place.attachment, place.is_cut_off = None, True

    def hear(self, place: ExpectedWatcher, attachment: Attachment, acknowledged: int, beat_ms: int) -> None:
        """A frame came."""
        if place.attachment is not attachment:
            return
        place.until = self._clock() + self._ttl
        if beat_ms:
            attachment.beat_ms = beat_ms
            attachment.wake.set()
        if acknowledged > place.acknowledged:
            place.acknowledged = acknowledged
            self._settle()

    def remove(self, place: ExpectedWatcher) -> None:
        """Its place is lost, or given up: nothing waits for it any more."""
        if self._places.get(place.member) is place:
            del self._places[place.member]
        if place.attachment:
            place.attachment.end()
        self._settle()

    def overdue(self) -> list[ExpectedWatcher]:
        """Those that have been silent for too long."""
        now = self._clock()
        return [place for place in self._places.values() if place.until <= now]

    def renew_all(self) -> None:
        """Counts the silence of every watcher from now."""
        until = self._clock() + self._ttl
        for place in self._places.values():
            place.until = until

    def covers(self, connection: str) -> bool:
        """Whether a watcher that has a place may have this connection."""
        return any(place.connections and connection.startswith(place.connections) for place in self._places.values())

    def close(self) -> None:
        """Ends all streams; what anybody knows counts for nothing until it has come back."""
        for place in self._places.values():
            place.needs = math.inf
            if place.attachment:
                place.attachment.end()
                place.attachment = None

    # -------------------------------------------------------------- versions

    def publish(self, version: int, news: News, askers: Collection[str] = ("",)) -> None:
        """Everybody attached whom it concerns is told; what a slow one has not been sent yet is merged.

        All others hear of the version with the answer to their next beat: a binding wakes no queue process. `askers`
        wait for all but themselves: what one alone has asked, nobody waits for it to acknowledge.
        """
        for place in self._places.values():
            concerned = place.is_concerned(news)
            if concerned:
                place.needs = version
            if attachment := place.attachment:
                attachment.version = version
                if concerned:
                    attachment.awaited = attachment.awaited if set(askers) == {place.member} else version
                    attachment.news.add(news)
                    attachment.wake.set()

    async def settled(self, version: int, asker: str = "") -> None:
        """Returns when every watcher that has a place routes by `version` or a later one, but for who asks.

        `asker`: a watcher that waits itself until it does, with the answer in its hands.
        """
        if version <= self._floor(asker):
            return
        self._ask_for(version, asker)
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._ticket += 1
        heapq.heappush(self._waiting.setdefault(asker, []), (version, self._ticket, done))
        await done

    def _ask_for(self, version: int, asker: str) -> None:
        """Those who were told that nobody waits for them are told that somebody does."""
        for member, place in self._places.items():
            attachment = place.attachment
            if member != asker and attachment and place.behind < version and attachment.awaited < version:
                attachment.awaited = attachment.version
                attachment.wake.set()

    def _floor(self, asker: str) -> float:
        return min((place.behind for member, place in self._places.items() if member != asker), default=math.inf)

    def _settle(self) -> None:
        for asker, waiting in list(self._waiting.items()):
            floor = self._floor(asker)
            while waiting and waiting[0][0] <= floor:
                done = heapq.heappop(waiting)[2]
                if not done.done():
                    done.set_result(None)
            if not waiting:
                del self._waiting[asker]
