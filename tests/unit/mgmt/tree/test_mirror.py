"""What the tree is read from."""

from __future__ import annotations

import json
import random
from collections import defaultdict
from collections.abc import AsyncIterator
from typing import Any

import pytest

from services.common.errors import Unavailable
from services.mgmt.tree import mirror
from services.mgmt.tree.mirror import Kept, Mirror
from services.rpc.store_pb2 import Record, Records


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
    """Is told after some seconds: nobody waits for it without end."""
    monkeypatch.setattr(mirror, "_PATIENCE", 0.01)
    with pytest.raises(Unavailable, match="the store does not tell"):
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
