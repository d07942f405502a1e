"""A queue in which messages wait in columns, driven against a list: what its record says is what became of each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.common import plugins
from services.common.ledger.place import LedgerPlace
from services.queue.machine.consumers import Consumer
from services.queue.machine.context import MAXLEN
from services.queue.machine.delivery.interest import Interest
from services.queue.machine.queue import Queue
from services.queue.machine.record import QueueRecord
from services.rpc import ledger_pb2 as ledger
from services.rpc import queue_pb2 as pb
from tests.support.messages import PROPERTIES, facts
from tests.support.queue_machine import Machine

_BESIDE: Final = 488  # bytes of a message and its entry, as the account has them
_OTHERS, _OWN = "others", "own"
_POLICIES: Final[list[dict[str, Any]]] = [
    {}, {}, {"max-length": 3}, {"max-length": 2, "overflow": "reject-publish"}, {"max-length-bytes": 9},
    {"message-ttl": 7}, {"delivery-limit": 1}, {"delayed-retry-type": "all", "delayed-retry-min": 5},
    {"overflow": "ring", "max-length": 3},
]  # fmt: skip

_STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("publish"), st.integers(1, 9), st.sampled_from(["", "", "", "", "ttl", "persistent", "own"])),
        st.tuples(st.just("publish"), st.integers(1, 9), st.just("")),
        st.tuples(
            st.just("attach"), st.integers(0, 6), st.sampled_from(["no-ack", "no-ack", "ack", "browse", "choose"])
        ),
        st.tuples(st.just("credit"), st.integers(1, 6), st.integers(0, 9)),
        st.tuples(st.just("bytes"), st.integers(1, 30), st.integers(0, 9)),
        st.tuples(st.just("get"), st.booleans(), st.none()),
        st.tuples(
            st.just("settle"), st.integers(0, 9), st.sampled_from([pb.ACCEPT, pb.RELEASE, pb.REJECT, pb.RESTORE])
        ),
        st.tuples(st.just("detach"), st.integers(0, 9), st.booleans()),
        st.tuples(st.just("purge"), st.integers(1, 9), st.none()),
        st.tuples(st.just("look"), st.integers(1, 9), st.booleans()),
        st.tuples(st.just("policy"), st.sampled_from(_POLICIES), st.none()),
        st.tuples(st.just("later"), st.integers(1, 9), st.none()),
        st.tuples(st.just("claim"), st.integers(0, 9), st.none()),
        st.tuples(st.just("hand_over"), st.none(), st.none()),
        st.tuples(st.just("transaction"), st.integers(1, 3), st.integers(1, 3)),
    ),
    max_size=30,
)


class _Told(NamedTuple):
    stage: int
    consumer: str
    uids: list[int]
    reason: str


def _kind(row: _Told) -> int:
    return ledger.DELIVERED if row.stage == ledger.SETTLED else row.stage


class _Recorder:
    """Keeps what the ledger is told."""

    on = True

    def __init__(self) -> None:
        self.rows: list[_Told] = []

    def record(self, stage: int, place: LedgerPlace, uids: Sequence[int], *, reason: str = "", **_: Any) -> None:
        self.rows.append(_Told(stage, place.consumer, list(uids), reason))


class _Message:
    def __init__(self, uid: int, position: int, body: int, expires: int, publisher: str) -> None:
        self.uid, self.position, self.body, self.expires, self.publisher = uid, position, body, expires, publisher
        self.attempts = 0


class _History:
    """One queue, and a list of what waits in it, kept by what the ledger is told and checked with every row."""

    def __init__(self, *, durable: bool) -> None:
        self.machine = Machine(durable=durable)
        self.recorder = _Recorder()
        self.queue = self.machine.queue
        self._listen()
        self.consumers: list[Consumer] = []
        self.policy: dict[str, Any] = {}
        self.now = self.position = 0
        self.sent: dict[int, _Message] = {}  # ever
        self.waiting: list[_Message] = []
        self.held: dict[int, _Message] = {}
        self.gone: set[int] = set()
        self.shown: list[tuple[int, int, bool]] = []

    def _listen(self) -> None:
        self.queue._entries.record = QueueRecord(self.recorder, self.queue.options, 1)  # type: ignore[arg-type]

    # -------------------------------------------------------------- what is done

    def publish(self, count: int, how: str) -> None:
        publisher, body = _OWN if how == "own" else _OTHERS, b"x" * (count % 4)
        its = facts("e", "key", persistent=how == "persistent", ttl_ms=5 if how == "ttl" else None, publisher=publisher)
        arrival = self.machine.arrival([its] * count, now=self.now, body=body)
        self._send(arrival.uids, self._places(count), len(body), 5 if how == "ttl" else None, publisher)
        self.queue.publish(arrival, self.now)

    def _places(self, count: int) -> int:
        self.position += count
        return self.position - count

    def _send(self, uids: Sequence[int], position: int, body: int, ttl: int | None, publisher: str) -> None:
        lives = [each for each in (ttl, self.policy.get("message-ttl")) if each is not None]
        expires = self.now + min(lives) if lives else 0
        for place, uid in enumerate(uids, position):
            self.sent[uid] = _Message(uid, place, body, expires, publisher)

    def transaction(self, count: int, meanwhile: int) -> None:
        """Its messages have their places before others that come before it is complete."""
        arrival = self.machine.arrival([facts("e", "key", publisher=_OTHERS)] * count, now=self.now)
        arrival.place, place = self.queue.transacted.place(count), self._places(count)
        arrival.parts = [None] * count
        if not self.queue.transacted.reserve(count, 4 * count):
            return
        self.publish(meanwhile, "")
        self.check()
        self._send(arrival.uids, place, 4, None, _OTHERS)
        self.queue.publish(arrival, self.now, reserved=True)

    def attach(self, credit: int, how: str) -> None:
        said: dict[str, Any] = {"settled": how != "ack", "browse": how == "browse"}
        if how == "choose":
            said["interest"] = Interest(None, _OWN)
        tag = str(self.machine._handle + 1)
        self.consumers.append(self.machine.consumer(messages=credit, now=self.now, tag=tag, **said))

    def _one(self, which: int) -> Consumer | None:
        return self.consumers[which % len(self.consumers)] if self.consumers else None

    def credit(self, count: int, which: int) -> None:
        if consumer := self._one(which):
            self.queue.credit(consumer, count, 0, self.now)

    def bytes(self, size: int, which: int) -> None:
        """So many from now on, with messages without end."""
        if consumer := self._one(which):
            consumer.size = 0
            self.queue.credit(consumer, 100, size, self.now)
            self.check()
            consumer.messages, consumer.size = 0, 1 << 40
            self.queue.consumers.stop(consumer)

    def get(self, settled: bool, _: None) -> None:
        first = next(iter(self._available()), None)
        entry = self.queue.get(self.machine.link, self.now, settled=settled)
        if self.queue._entries.aside is None:
            assert (entry and entry.message.uid) == (first and first.uid)

    def settle(self, which: int, outcome: pb.Outcome.ValueType) -> None:
        uids = list(self.queue.unsettled)[which % 3 :: 2]
        if outcome == pb.RELEASE:
            for uid in uids:
                self.sent[uid].attempts += 1
        self.queue.settle(outcome, uids, self.now)

    def detach(self, which: int, give_back: bool) -> None:
        if consumer := self._one(which):
            self.consumers.remove(consumer)
            self.queue.detach(consumer, self.now)
        if give_back:
            self.settle(0, pb.RESTORE)

    def purge(self, most: int, _: None) -> None:
        self.queue.picking.purge(most)

    def look(self, most: int, drop: bool) -> None:
        walk, found = self.queue.picking.walk(held=False), []
        while not walk.over:
            found += walk.some(most)
        if self.queue._entries.aside is None:
            assert [each.message.uid for each in found] == [each.uid for each in self.waiting]
        if drop:
            self.queue.picking.drop(found[most % 3 :: 3])

    def policy_(self, policy: dict[str, Any]) -> None:
        self.policy = policy
        self.machine.adopt(policy, self.now)

    def later(self, by: int, _: None) -> None:
        self.now += by
        self.queue.expire(self.now)
        self.queue.dispatch(self.now)

    def claim(self, which: int, _: None) -> None:
        """A gateway says that it has some of what waits, and that nobody had before."""
        if uids := [each.uid for each in self.waiting[which % 4 :: 3] if not each.attempts]:
            self.queue.claim(uids, self.machine.link, self.now)

    def hand_over(self, *_: None) -> None:
        """Another owner has what is here; nobody consumes there yet."""
        for consumer in self.consumers:
            self.queue.detach(consumer, self.now)
        self.consumers.clear()
        self.queue.settle(pb.RESTORE, list(self.queue.unsettled), self.now)
        self.check()
        entries = sorted(self.queue.give_up(), key=lambda entry: entry.position)
        for entry in entries:
            entry.state = 0
        self.machine.queue = self.queue = Queue(
            plugins.load("queue_types", "classic"),
            self.queue.options,
            self.machine.context,
            plugins.load("overflow_policies", self.queue.options.overflow)(),
            self.now,
        )
        self._listen()
        if entries:
            self.queue.recover(entries, self.now)
        self.machine.adopt(self.policy, self.now)

    # -------------------------------------------------------------- what has become of it

    def check(self) -> None:
        """What the ledger was told since is true of the list, and links and sums say the same."""
        while self.queue.unfinished or self.queue._backlog._behind:
            self.queue.expire(self.now)
            self.queue.dispatch(self.now)
        rows, self.recorder.rows = self.recorder.rows, []
        while rows:
            count = next((at for at, row in enumerate(rows) if _kind(row) != _kind(rows[0])), len(rows))
            self._ROWS[_kind(rows[0])](self, rows[:count])
            del rows[:count]
        assert sorted(self.machine.link.taken()) == sorted(self.shown)
        self.shown = []
        self._sums()

    def _sums(self) -> None:
        its, queue = [*self.waiting, *self.held.values()], self.queue
        assert queue.ready_count == len(self.waiting)
        assert queue._entries.size == sum(each.body for each in self.waiting)
        assert set(queue.unsettled) == set(self.held)
        kept = sum(each.body + len(PROPERTIES) + len("key") + _BESIDE for each in its)
        assert queue.holding.size == self.machine.account.used == kept
        plain = not any(each.chooses for each in self.consumers) and queue._entries.aside is None
        if plain and any(each.ready for each in self.consumers):
            assert not self._available(), "who can take is given what waits"

    def _available(self) -> list[_Message]:
        return [each for each in self.waiting if not 0 < each.expires <= self.now]

    def _leaves(self, uid: int) -> _Message:
        message = next(each for each in self.waiting if each.uid == uid)
        self.waiting.remove(message)
        return message

    def _enqueued(self, rows: list[_Told]) -> None:
        for uid in (uid for row in rows for uid in row.uids):
            assert uid not in self.gone
            assert all(each.uid != uid for each in self.waiting)
            self._comes(self.sent[uid])

    def _comes(self, message: _Message) -> None:
        self.waiting.append(message)
        self.waiting.sort(key=lambda each: each.position)

    def _delivered(self, of_consumers: list[_Told]) -> None:
        """In turns, and settled in between; all of it is what stood first."""
        rows = [row for row in of_consumers if row.stage == ledger.DELIVERED]
        browsing = {str(each.handle) for each in self.consumers if each.browse}
        taken = [uid for row in rows for uid in row.uids if row.consumer not in browsing]
        if not any(each.chooses for each in self.consumers) and self.queue._entries.aside is None:
            assert sorted(taken) == sorted(each.uid for each in self._available()[: len(taken)])
        for row in rows:
            positions = [self.sent[uid].position for uid in row.uids]
            assert positions == sorted(positions) or any(self.sent[uid].attempts for uid in row.uids)
            if row.consumer:
                self.shown += [(int(row.consumer), uid, self.sent[uid].attempts > 0) for uid in row.uids]
            if row.consumer in browsing:
                continue
            for uid in row.uids:
                message = self._leaves(uid)
                self.held[uid] = message  # until it is settled, which is at once for some
        self._settled([row for row in of_consumers if row.stage == ledger.SETTLED])

    def _recovered(self, rows: list[_Told]) -> None:
        for uid in (uid for row in rows for uid in row.uids):
            self.held[uid] = self._leaves(uid)

    def _settled(self, rows: list[_Told]) -> None:
        for uid in (uid for row in rows for uid in row.uids):
            del self.held[uid]
            self.gone.add(uid)

    def _requeued(self, rows: list[_Told]) -> None:
        for uid in (uid for row in rows for uid in row.uids):
            self._comes(self.held.pop(uid))

    def _expired(self, rows: list[_Told]) -> None:
        for uid in (uid for row in rows for uid in row.uids):
            assert 0 < self.sent[uid].expires <= self.now
            self._leaves(uid)
            self.gone.add(uid)

    def _dropped(self, rows: list[_Told]) -> None:
        """From the front, where there is too much; others were picked, or refused, or somebody's."""
        for row in rows:
            waits = [each.uid for each in self.waiting if each.uid in row.uids]
            if row.reason == MAXLEN and self.policy.get("overflow") != "ring" and self.queue._entries.aside is None:
                assert waits == [each.uid for each in self.waiting[: len(waits)]]
            for uid in waits:
                self._leaves(uid)
            for uid in row.uids:
                self.held.pop(uid, None)
            self.gone.update(row.uids)

    _ROWS: Final[dict[int, Callable[[_History, list[_Told]], None]]] = {
        ledger.ENQUEUED: _enqueued,
        ledger.DELIVERED: _delivered,
        ledger.RECOVERED: _recovered,
        ledger.REQUEUED: _requeued,
        ledger.EXPIRED: _expired,
        ledger.DROPPED: _dropped,
    }


@pytest.mark.fuzz
@settings(max_examples=max(300, settings.default.max_examples))
@given(st.booleans(), _STEPS)
def test_a_queue_is_a_list(durable: bool, steps: list[tuple[str, Any, Any]]) -> None:
    """None is lost, none is there twice, each leaves in its turn; at last nothing is in memory."""
    history = _History(durable=durable)
    for step, first, second in [("attach", 0, "no-ack"), ("publish", 4, ""), *steps]:
        if step == "policy":
            history.policy_(first)
        else:
            getattr(history, step)(first, second)
        history.check()
    history.queue.settle(pb.ACCEPT, list(history.queue.unsettled), history.now)
    history.queue.picking.purge(1 << 30)
    assert history.machine.account.used == 0
