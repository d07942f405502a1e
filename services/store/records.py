"""Configuration records: all in memory, the durable ones on disk too, every change with a version of the whole set.

Watchers follow by version, not by a queue of their own: the records are kept in the order of their last change, so
whoever is slow gets the latest of each, and costs nothing meanwhile. Nobody is woken by kinds that it does not
watch: a stack has two dozen watchers, and most changes concern one or two.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, defaultdict
from collections.abc import AsyncGenerator, Collection, Iterable, Iterator, Sequence
from operator import attrgetter

from services.common.errors import BrokerError, Fenced, Overtaken
from services.rpc.store_pb2 import PutRecordsRequest, Record, Unchanged
from services.rpc.store_pb2 import Records as RecordsMessage
from services.store.committer import Committer
from services.store.draft import Draft
from services.store.fencing import Epochs
from services.store.provider import RecordRow

# Remembered deletions; a watcher that is further behind gets a snapshot instead.
TOMBSTONES = 10_000
# Records in one message of a stream.
_CHUNK = 1000

Key = tuple[str, str]
_VERSION = attrgetter("version")


class _Follower:
    """A watcher between two messages: how far it has seen, and whether there is more for it."""

    __slots__ = ("kinds", "more", "seen")

    def __init__(self, kinds: Iterable[str]) -> None:
        self.kinds = frozenset(kinds)  # none: all kinds
        self.seen = -1
        self.more = asyncio.Event()
        self.more.set()

    def hear(self, before: int) -> None:
        """Records of its kinds have changed. It has seen all of its own `before`: others' it need not look through."""
        if not self.more.is_set():
            self.seen = before
            self.more.set()


class Records:
    """The record set and those who watch it."""

    def __init__(self, committer: Committer, epochs: Epochs) -> None:
        self._committer = committer
        self._epochs = epochs
        self._incarnation = 0
        self._next = 0  # version of the last change that was decided
        self._version = 0  # version of the last change that is durable
        self._records: OrderedDict[Key, Record] = OrderedDict()  # by last change, tombstones too
        # Those that there are, by kind: who lists a few users does not go through ten thousand queues.
        self._there: defaultdict[str, dict[str, Record]] = defaultdict(dict)
        self._tombstones: OrderedDict[Key, int] = OrderedDict()
        self._forgotten = 0  # newest deletion that is not remembered
        self._decided: dict[str, int] = {}  # version of the last change of each kind, durable or not yet
        self._under_way: dict[Key, int] = {}  # of records, those that are not durable yet
        # By kind, of all kinds by "", each in the order in which they came: a change of one is not told to dozens.
        self._followers: defaultdict[str, dict[_Follower, None]] = defaultdict(dict)
        self._allowed: dict[RecordChange, None] = {}  # with a fence, and not durable yet

    def restore(self, rows: Iterable[RecordRow], incarnation: int) -> None:
        """What is on disk; versions of this incarnation exceed all earlier ones, those of transient changes too."""
        self._incarnation = incarnation
        self._next = self._version = self._forgotten = incarnation << 32
        for row in sorted(rows, key=lambda row: row.version):
            record = Record(kind=row.kind, key=row.key, value=row.value, version=row.version)
            self._records[row.kind, row.key] = self._there[row.kind][row.key] = record

    async def put(self, request: PutRecordsRequest) -> int:
        """Puts and deletes in one commit; gives the version when durable. Raises Fenced when the fence is old.

        Raises Overtaken where something is changed that was not to be.
        """
        change = RecordChange(self, request)
        self._committer.submit(change)
        return await change.answer

    def under_way(self, leases: Collection[str]) -> list[asyncio.Future[int]]:
        """Changes that holders of these were allowed, and that are not durable yet."""
        return [change.version for change in self._allowed if change.lease in leases]

    def value_of(self, kind: str, key: str) -> bytes | None:
        """Of one that there is."""
        found = self._there.get(kind, {}).get(key)
        return None if found is None else found.value

    def snapshot(self, kinds: Sequence[str]) -> Iterator[RecordsMessage]:
        """All records of `kinds` (all kinds when there are none), in messages of bounded length."""
        wanted = dict.fromkeys(kinds) or list(self._there)
        found = [record for kind in wanted for record in self._there.get(kind, {}).values()]
        return self._messages(sorted(found, key=_VERSION), snapshot=True)

    async def watch(self, kinds: Sequence[str]) -> AsyncGenerator[RecordsMessage, None]:
        """A snapshot, then changes as they become durable; another snapshot to whoever fell too far behind."""
        follower = _Follower(kinds)
        for kind in follower.kinds or ("",):
            self._followers[kind][follower] = None
        try:
            while True:
                await follower.more.wait()
                follower.more.clear()
                behind, follower.seen = follower.seen, self._version
                if behind < self._forgotten:
                    messages = self.snapshot(kinds)
                else:
                    messages = self._messages(self._since(behind, follower.kinds), snapshot=False)
                for message in messages:
                    yield message
        finally:
            for kind in follower.kinds or ("",):
                self._followers[kind].pop(follower, None)

    def decide(self, request: PutRecordsRequest, draft: Draft) -> int:
        """Checks what it rests on, gives the version and puts the durable part into the group. Raises as `put`."""
        fence = request.fence
        if request.HasField("fence") and (refused := self._epochs.refused([fence])):
            raise Fenced(f"{refused[0]} has a newer epoch than {fence.epoch}")
        if other := next((each for each in request.unchanged if self._is_changed(each)), None):
            raise Overtaken(f"{other.kind.replace('_', ' ')} {other.key}".rstrip() + " was changed at the same time")
        self._next += 1
        self._note(request)
        rows = draft.changes.records
        for record in request.puts:
            key = (record.kind, record.key)
            if not record.transient:
                rows[key] = RecordRow(record.kind, record.key, record.value, self._next)
            elif self._is_durable(key, draft):
                rows[key] = None
        for record in request.deletes:
            if self._is_durable((record.kind, record.key), draft):
                rows[record.kind, record.key] = None
        return self._next

    def apply(self, request: PutRecordsRequest, version: int) -> None:
        """A change is durable: shows it."""
        for record in request.puts:
            self._show(
                Record(kind=record.kind, key=record.key, value=record.value, transient=record.transient), version
            )
        for record in request.deletes:
            if (record.kind, record.key) in self._records:
                self._show(Record(kind=record.kind, key=record.key, deleted=True), version)
        for record in (*request.puts, *request.deletes):
            if self._under_way.get((record.kind, record.key)) == version:
                del self._under_way[record.kind, record.key]
        before, self._version = self._version, version
        for kind in ("", *dict.fromkeys(record.kind for record in (*request.puts, *request.deletes))):
            for follower in self._followers.get(kind, ()):
                follower.hear(before)

    def allowed(self, change: RecordChange) -> None:
        """It is decided, and on its way to the disk."""
        if change.lease:
            self._allowed[change] = None

    def settled(self, change: RecordChange) -> None:
        """It is durable, or refused."""
        self._allowed.pop(change, None)

    def _note(self, request: PutRecordsRequest) -> None:
        """What watchers are going to be told of: to delete what never was there is no change."""
        gone = [(record.kind, record.key) for record in request.deletes]
        there = [key for key in gone if key in self._records or key in self._under_way]
        for key in (*((record.kind, record.key) for record in request.puts), *there):
            self._decided[key[0]] = self._under_way[key] = self._next

    def _is_changed(self, told: Unchanged) -> bool:
        """Whether it may be."""
        if told.version < self._incarnation << 32:
            return True  # what was transient is gone since
        last = self._last_of_key(told) if told.HasField("key") else self._decided.get(told.kind, 0)
        return last > told.version

    def _last_of_key(self, told: Unchanged) -> int:
        """Of what may be deleted and forgotten since, the last change of its kind counts."""
        key = (told.kind, told.key)
        if version := self._under_way.get(key):
            return version
        if known := self._records.get(key):
            return known.version
        return self._decided.get(told.kind, 0) if told.version < self._forgotten else 0

    def _is_durable(self, key: Key, draft: Draft) -> bool:
        known = self._records.get(key)
        return key in draft.changes.records or (known is not None and not known.deleted and not known.transient)

    def _show(self, record: Record, version: int) -> None:
        record.version = version
        key = (record.kind, record.key)
        self._tombstones.pop(key, None)
        self._records[key] = record
        self._records.move_to_end(key)
        there = self._there[record.kind]
        there.pop(record.key, None)
        if record.deleted:
            self._tombstones[key] = version
            if len(self._tombstones) > TOMBSTONES:
                oldest, self._forgotten = self._tombstones.popitem(last=False)
                del self._records[oldest]
        else:
            there[record.key] = record

    def _since(self, version: int, wanted: frozenset[str]) -> list[Record]:
        changed = []
        for record in reversed(self._records.values()):
            if record.version <= version:
                break
            if not wanted or record.kind in wanted:
                changed.append(record)
        changed.reverse()
        return changed

    def _messages(self, records: list[Record], *, snapshot: bool) -> Iterator[RecordsMessage]:
        version = self._version
        if not records and not snapshot:
            return
        for start in range(0, max(len(records), 1), _CHUNK):
            yield RecordsMessage(
                records=records[start : start + _CHUNK],
                version=version,
                snapshot=snapshot,
                last=start + _CHUNK >= len(records),
                incarnation=self._incarnation,
            )


class RecordChange:
    """Puts and deletes on their way through the committer."""

    def __init__(self, records: Records, request: PutRecordsRequest) -> None:
        loop = asyncio.get_running_loop()
        self.answer: asyncio.Future[int] = loop.create_future()  # of who asked, who may not wait any more
        self.version: asyncio.Future[int] = loop.create_future()  # once it is durable; never, where it is refused
        self._records = records
        self._request = request
        self._result: int | BrokerError = 0

    @property
    def lease(self) -> str:
        """Whose holder makes it; "" for no one's."""
        return self._request.fence.lease

    def prepare(self, draft: Draft) -> None:
        try:
            self._result = self._records.decide(self._request, draft)
        except BrokerError as refused:
            self._result = refused
        else:
            self._records.allowed(self)

    def written(self) -> None:
        self._records.settled(self)
        if isinstance(self._result, BrokerError):
            if not self.answer.done():
                self.answer.set_exception(self._result)
                self.answer.exception()  # who asked may be gone before it hears that
            return
        self._records.apply(self._request, self._result)
        self.version.set_result(self._result)
        if not self.answer.done():
            self.answer.set_result(self._result)
