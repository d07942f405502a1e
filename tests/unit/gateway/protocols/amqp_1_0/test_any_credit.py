"""Credit, drains and windows in any order, of an engine in front of a session and its consumers (2.5.6, 2.6.7).

The client and the owners of its queues are models: whatever a client says, it is sent nothing that it did not ask for,
and once it asks for everything, it has had everything, once.
"""

from __future__ import annotations

from collections import deque
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.gateway import vocabulary as v
from services.gateway.operations import carry_out
from services.gateway.protocols.amqp_1_0.performatives import SETTLED, UNSETTLED, Flow, Transfer
from services.gateway.sessions.backlog import Arrived
from services.gateway.sessions.consumer import Consumer, ConsumerState
from services.gateway.sessions.credit import LinkCredit
from services.gateway.sessions.session import Session
from services.rpc import queue_pb2 as pb
from tests.support.amqp_1_0_playbook import NEW, Playbook, data, framed, receiving

pytestmark = pytest.mark.fuzz

_ROOM = 2000  # bytes on their way to a consumer
_PLENTY = 1000  # frames


class Owner:
    """Of a queue with one consumer. What it says comes when the world has it `arrive`."""

    def __init__(self) -> None:
        self.ready: list[tuple[int, bytes]] = []
        self.said: deque[list[tuple[int, bytes]] | pb.Drained] = deque()
        self.published = 0
        self._given: dict[int, bytes] = {}
        self._messages, self._room, self._drains = 0, _ROOM, False

    def publish(self, sizes: list[int]) -> None:
        for size in sizes:
            self.published += 1
            self.ready.append((self.published, data(b"<%d>" % self.published + b"x" * size)))
        self._dispatch()

    def credit(self, _handle: int, messages: int, size: int, *, drain: bool = False, stop: bool = False) -> None:
        assert messages >= 0
        self._messages, self._room, self._drains = self._messages + messages, self._room + size, self._drains or drain
        self._dispatch()
        if stop:
            self._end_credit(stopped=True)

    def _end_credit(self, *, stopped: bool) -> None:
        self.said.append(pb.Drained(left=self._messages, stopped=stopped))
        self._messages = 0

    def restore(self, _queue: int, _outcome: object, uids: list[int]) -> None:
        self.ready = sorted([*self.ready, *((uid, self._given[uid]) for uid in uids if uid in self._given)])
        self._dispatch()

    def _dispatch(self) -> None:
        given = []
        while self.ready and self._messages and self._room > 0:
            message = self.ready.pop(0)
            self._messages, self._room = self._messages - 1, self._room - len(message[1])
            given.append(message)
        if given:
            self._given.update(given)
            self.said.append(given)
        if self._drains and (not self.ready or not self._messages):
            self._end_credit(stopped=False)
            self._drains = False


class Receiver:
    """A client's end of a link, and what it has had."""

    def __init__(self, owner: Owner) -> None:
        self.owner = owner
        self.had: list[int] = []
        self.count = self.limit = 0  # deliveries, as both ends count them, and how far they may go
        self.drains = False


class World:
    """One session of a client, with a link for each sender-settle-mode."""

    def __init__(self, *modes: int) -> None:
        self.book = Playbook().opened(max_frame_size=512)
        self.book.begun(window=0)
        self.frames = self.window = 0
        self.hungry: dict[Consumer, None] = {}
        self.turns = False
        observer, self.owners = Mock(), [Owner() for _ in modes]
        broker = SimpleNamespace(sessions={}, observer=observer, settle=self._settle)
        connection = SimpleNamespace(
            broker=broker, record=SimpleNamespace(on=False, open=False), writable=True, parting=False, lost=False,
            name="1.1", waiting=0, engine=self.book.engine, wrote=lambda its: self.hungry.update({its: None}),
            wants_to_write=lambda _: self._wants_turn(), flush_soon=lambda: None, take_pending=self.pend,
            carry_out=carry_out, permitted=Mock(),
        )  # fmt: skip
        self.session = Session(1, cast("Any", connection))
        self.links = [self._attach(at, mode) for at, mode in enumerate(modes)]

    def _attach(self, at: int, mode: int) -> Receiver:
        self.book.does(0, receiving("q", at, snd_settle_mode=mode))
        tag = next(each.tag for each in reversed(self.book.asked) if isinstance(each, v.Consume))
        self.session.consumers[tag] = Consumer(
            handle=at, session=self.session, tag=tag, queue_id=at, settled=mode == SETTLED, exclusive=False,
            browse=False, priority=0, credit=LinkCredit(), window=_ROOM, place=cast("Any", None),
            state=ConsumerState.ATTACHED, link=cast("Any", self.owners[at]), started=True, stops=True,
        )  # fmt: skip
        return Receiver(self.owners[at])

    def _settle(self, queue: int, outcome: object, uids: list[int], *_change: object) -> None:
        self.owners[queue].restore(queue, outcome, uids)

    def _wants_turn(self) -> None:
        self.turns = True

    def pend(self) -> None:
        for request in self.book.engine.pending_requests():
            self.session.handle(request)

    def says(self, flow: Flow) -> None:
        for request in self.book.engine.receive(framed(0, flow)):
            self.session.handle(request)
        self.turn()

    def turn(self) -> None:
        """What a connection does when it flushes; then the client reads."""
        self.pend()
        while self.turns:
            self.turns = self.session.write_parked()
        self.pend()
        hungry, self.hungry = self.hungry, {}
        for consumer in hungry:
            consumer.grant()
        self._read()

    def _read(self) -> None:
        for _, frame, payload in self.book.sent():
            link = self.links[frame.handle]
            if isinstance(frame, Flow):
                assert frame.delivery_count + frame.link_credit == link.limit
                link.count = frame.delivery_count
                continue
            assert isinstance(frame, Transfer)
            self.frames += 1
            self.window -= 1
            assert self.window >= 0
            if frame.delivery_id is not None:
                assert link.count < link.limit
                link.count += 1
                link.had.append(int(payload.partition(b"<")[2].partition(b">")[0]))

    # -------------------------------------------------------------- what may happen

    def again(self, at: int, window: int, drain: bool) -> None:
        """The credit that there is, of which some may be used meanwhile."""
        link = self.links[at]
        self.flow(at, link.limit - link.count, window, drain)

    def flow(self, at: int, credit: int, window: int, drain: bool) -> None:
        link = self.links[at]
        link.limit, link.drains, self.window = link.count + credit, drain, window
        self.says(Flow(self.frames, window, 0, 1, at, link.count, credit, drain=drain))

    def opens(self, window: int) -> None:
        self.window = window
        self.says(Flow(self.frames, window, 0, 1))

    def publishes(self, at: int, sizes: list[int]) -> None:
        self.owners[at].publish(sizes)

    def arrives(self, at: int) -> None:
        """The next of what an owner has said."""
        owner = self.owners[at]
        if not owner.said:
            return
        said, consumer = owner.said.popleft(), list(self.session.consumers.values())[at]
        if isinstance(said, pb.Drained):
            (consumer.stopped if said.stopped else consumer.drained)(said.left)
        else:
            uids, bodies = zip(*said, strict=True)
            count = len(uids)
            arrived = Arrived(0, list(uids), [NEW] * count, [b""] * count, list(bodies), sum(map(len, bodies)))
            self.session.deliver(consumer, arrived)
        self.turn()

    def everything(self) -> None:
        """Its drains end. Then the client wants all that there is, and gives no more credit than that takes."""
        self.opens(_PLENTY)
        self._all_arrives()
        assert all(link.count == link.limit for link in self.links if link.drains)
        for at, link in enumerate(self.links):
            self.flow(at, link.owner.published - len(link.had), _PLENTY, drain=False)
        self._all_arrives()

    def _all_arrives(self) -> None:
        while any(owner.said for owner in self.owners):
            for at in range(len(self.links)):
                self.arrives(at)


_AT = st.integers(0, 1)
_CREDIT = st.sampled_from([0, 1, 5, 9])
_WINDOW = st.sampled_from([0, 0, 1, 9])
_STEPS = st.one_of(
    st.tuples(st.just(World.flow), _AT, _CREDIT, _WINDOW, st.booleans()),
    st.tuples(st.just(World.again), _AT, _WINDOW, st.booleans()),
    st.tuples(st.just(World.opens), _WINDOW),
    st.tuples(st.just(World.publishes), _AT, st.lists(st.sampled_from([1, 700]), min_size=1, max_size=4)),
    st.tuples(st.just(World.arrives), _AT),
)


@given(
    st.lists(_STEPS, min_size=40, max_size=60),
    st.sampled_from([UNSETTLED, SETTLED]),
    st.sampled_from([UNSETTLED, SETTLED]),
)
def test_all_of_it_once(steps: list[Any], first: int, second: int) -> None:
    """Nothing beyond credit or window; no credit is lost, whatever was taken back, drained, or kept for the window.

    What had to go back, since there was no credit for it when it came, comes again in its place.
    """
    world = World(first, second)
    for step, *how in steps:
        step(world, *how)
    world.everything()
    for link in world.links:
        assert link.had == list(range(1, link.owner.published + 1))
