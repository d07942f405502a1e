"""What the tree is read from."""

from __future__ import annotations

import asyncio
import json
import random
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable
from typing import Any

import pytest

from services.common.clients.store import StoreClient
from services.common.errors import Overtaken, Unavailable
from services.mgmt.tree import mirror
from services.mgmt.tree.mirror import Kept, Mirror
from services.rpc.store_pb2 import Fence, Record, Records, Unchanged


def _queue(key: str, host: str, **more: Any) -> Record:
    return Record(kind="queue", key=key, value=json.dumps({"virtual_host": host, **more}).encode())


def _said(its: list[Kept]) -> list[bytes]:
    return sorted(each.raw for each in its)


async def _followed(into: Mirror, *batches: Records) -> None:
    async def told() -> AsyncIterator[Records]:
        for each in batches:
            yield each

    await into.follow(told())


async def test_a_store_that_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """Is reported after some seconds: no request waits for it without end."""
    monkeypatch.setattr(mirror, "_PATIENCE", 0.01)
    with pytest.raises(Unavailable, match="the store does not answer"):
        await Mirror().known()


async def test_groups() -> None:
    """Say after each change, and after another snapshot, what is in the table; those that a change leaves stay."""
    chance, kept = random.Random(7), Mirror()
    kept.grouped("queue", "virtual_host")
    for turn in range(300):
        key, host = f"q{chance.randrange(20)}", f"v{chance.randrange(4)}"
        record = _queue(key, host, turn=turn)
        record.deleted = chance.random() < 0.4
        before = dict(kept.grouped("queue", "virtual_host"))
        await _followed(kept, Records(records=[record], snapshot=turn % 50 == 0, last=True))
        wanted = defaultdict(list)
        for each in kept.tables["queue"].values():
            wanted[each.value["virtual_host"]].append(each)
        grouped = kept.grouped("queue", "virtual_host")
        assert {each: _said(its) for each, its in grouped.items()} == {each: _said(its) for each, its in wanted.items()}
        if turn % 50:
            changed = [each for each in grouped if grouped[each] is not before.get(each)]
            assert len(changed) <= 2


class Ahead(StoreClient):
    """A store that has something newer than version 1."""

    def __init__(self) -> None:
        self.asked: list[Unchanged] = []

    async def put_records(
        self,
        puts: Iterable[Record] = (),
        deletes: Iterable[Record] = (),
        fence: Fence | None = None,
        unchanged: Iterable[Unchanged] = (),
    ) -> int:
        self.asked += unchanged
        if self.asked[-1].version < 2:
            raise Overtaken("queue a was changed at the same time")
        return 3


async def test_what_rests_on_what_is_here() -> None:
    """Is put as of the version that is whole here; an overtaken caller is told when the newer is here, not before."""
    kept, store = Mirror(), Ahead()
    await _followed(kept, Records(records=[_queue("a", "/")], snapshot=True, last=True, version=1))
    await _followed(kept, Records(records=[_queue("b", "/")], version=2))
    of_a = Unchanged(kind="queue", key="a")
    putting = asyncio.ensure_future(kept.put(store, [_queue("a", "/", n=1)], unchanged=[of_a]))
    await asyncio.sleep(0.05)
    assert not putting.done()
    await _followed(kept, Records(records=[_queue("a", "/", n=2)], version=2, last=True))
    with pytest.raises(Overtaken):
        await putting
    await kept.put(store, [_queue("a", "/", n=3)], unchanged=[of_a])
    assert store.asked == [Unchanged(kind="queue", key="a", version=version) for version in (1, 2)]


class Listing(StoreClient):
    """A store that has these records; or none that answers."""

    def __init__(self, *records: Record) -> None:
        self.records = list(records)

    async def list_records(self, kinds: Iterable[str] = ()) -> list[Record]:
        if not self.records:
            raise Unavailable("it is away")
        return [each for each in self.records if each.kind in kinds]


async def test_what_was_written_over_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Has arrived when the newer is here, since a watch never tells of the older; what is on its way has not."""
    monkeypatch.setattr(mirror, "_SOON", 0.01)
    monkeypatch.setattr(mirror, "_PATIENCE", 0.05)
    kept, newer = Mirror(), _queue("a", "/", n=2)
    await _followed(kept, Records(records=[newer], snapshot=True, last=True))

    def is_older() -> bool:
        return kept.tables["queue"]["a"].value["n"] == 1

    await kept.arrived(Listing(newer, Record(kind="user", key="u")), "queue", is_older)
    for store in (Listing(_queue("a", "/", n=1)), Listing(newer, _queue("b", "/")), Listing()):
        with pytest.raises(Unavailable, match="it is done, but not seen here yet"):
            await kept.arrived(store, "queue", is_older)
