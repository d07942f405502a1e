"""Anything that a frame or a name may hold can be written: a group that cannot would be tried for ever."""

from __future__ import annotations

from services.store.provider import Changes, DequeueRow, EntryRow, LeaseRow, OutcomeRow, RecordRow, RefusalRow, TakenRow
from services.store.providers.postgres import PostgresProvider
from tests.support.read_back import batches_of

_MOST = (1 << 63) - 1
_COUNT = (1 << 32) - 1  # of a uint32


async def test_the_largest_numbers(provider: PostgresProvider) -> None:
    """As far as the contract's types and the store's own limit go."""
    entry = EntryRow(_MOST, _COUNT, _MOST, _COUNT, b"")
    taken = TakenRow(_MOST, _COUNT, _MOST, _MOST, b"")
    changes = Changes(
        at=_MOST,
        contents={_MOST: b""},
        entries={_MOST: entry},
        dequeues=[DequeueRow(_MOST, _COUNT, b"")],
        delivered={_MOST: _COUNT},
        taken=[taken],
        floors={(_COUNT, _MOST): _MOST},
        writers={_MOST: _MOST},
        refusals=[RefusalRow(_MOST, _MOST, b"")],
        outcomes={(1 << 64) - 1: True, 1 << 63: False, _MOST: True, 0: False},
        leases={"l": LeaseRow("l", _MOST)},
        records={("k", "k"): RecordRow("k", "k", b"", _MOST)},
        origin=_MOST,
        running=_MOST,
        incarnation=_MOST,
    )
    await provider.commit(changes)
    (batch,) = [batch async for batch in batches_of(provider, _COUNT)]
    assert (batch.entry, batch.delivered_upto, batch.dequeues) == (entry, _COUNT, [b""])
    assert await provider.taken(_COUNT) == [taken]
    assert await provider.floors(_COUNT) == [(_MOST, _MOST)]
    assert await provider.writers() == {_MOST: _MOST}
    assert set(await provider.outcomes()) == {OutcomeRow(*row, _MOST) for row in changes.outcomes.items()}
    assert await provider.leases() == list(changes.leases.values())
    assert await provider.last_origin() == await provider.running() == _MOST


async def test_names_of_all_kinds(provider: PostgresProvider) -> None:
    """With a zero, of any script, longer than what an index takes, and alike but for where they are parted."""
    keys = ["", "a\0b", "кролик 🐇", "x" * 100_000, "bc"]
    rows = [RecordRow(kind, key, b"1", 1) for kind in ("a", "ab", "", "\0") for key in (*keys, "c")]
    await provider.commit(Changes(records={(row.kind, row.key): row for row in rows}))
    leases = {name: LeaseRow(name, 1, name, name, name) for name in ("a\0b", "кролик")}
    await provider.commit(Changes(leases=leases))
    assert sorted(await provider.records()) == sorted(rows)
    assert {row.name: row for row in await provider.leases()} == leases
    await provider.commit(Changes(records={("a", "a\0b"): None, ("ab", "c"): None}))
    assert len(await provider.records()) == len(rows) - 2


async def test_removals_come_first(provider: PostgresProvider) -> None:
    """What a group removes and brings is there after it."""
    entry = EntryRow(1, 1, 1, 2, b"e")
    await provider.commit(Changes(contents={1: b"old"}, entries={1: entry}, dequeues=[DequeueRow(1, 1, b"d")]))
    await provider.commit(
        Changes(dead_batches=[1], dead_contents=[1], contents={1: b"new"}, entries={1: entry}, blanked={2: b"b"})
    )
    (batch,) = [batch async for batch in batches_of(provider, 1)]
    assert (batch.columns, batch.dequeues) == (b"new", [])


async def test_large_groups_come_back_in_chunks(provider: PostgresProvider) -> None:
    """A group of many large contents is written at once, and read a few at a time, in order."""
    numbers = range(1, 21)
    body = bytes(4 << 20)
    await provider.commit(
        Changes(
            contents=dict.fromkeys(numbers, body),
            entries={number: EntryRow(number, 1, number, 1, b"e") for number in numbers},
        )
    )
    assert [batch.entry.id async for batch in batches_of(provider, 1)] == list(numbers)
    pieces = [len(changes.contents) async for changes in provider.snapshot() if changes]
    assert max(pieces) == 1
