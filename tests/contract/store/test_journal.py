"""The journal: what is acknowledged is there, once, and what is empty is gone."""

from __future__ import annotations

import asyncio
from typing import Any

from services.common.disk import Room
from services.rpc.queue_pb2 import PublishBatch
from services.rpc.store_pb2 import Delivered, Dequeue, EntryBatch, EntryColumns, Fence, Floor, JournalFrame, Taken
from services.store.compaction import compact
from tests.support.store_house import House, content, dequeue, enqueue, entries


async def test_recovers_what_was_acknowledged(house: House) -> None:
    """Entries come back with their columns, dequeues, delivery mark and floors, also after a restart."""
    frame = enqueue(10, 4)
    await house.append(frame)
    await house.append(dequeue(10, 0, 2))
    await house.append(JournalFrame(delivered=[Delivered(batch=10, upto=3)]))
    for _ in range(2):
        again, batch = await house.recovered()
        assert [(floor.partition, floor.origin, floor.uid) for floor in again.floors] == [(1, 7, 10)]
        assert batch.entries == frame.entries[0]
        assert batch.columns == frame.contents[0].columns
        assert sorted(batch.dequeued) == [0, 2]
        assert batch.delivered_upto == 3
        await house.restart()


async def test_what_goes_ahead_for_room_is_there_once(house: House) -> None:
    """What frees room is written while its frame waits for some, and stays so when that is written, or sent again."""
    await house.append(enqueue(10, 3))
    frames = [enqueue(20, 1, apart=True), dequeue(10, 0, apart=True)]
    frames[0].dequeues.add(batch=10, indexes=[2])
    frames[1].delivered.add(batch=10, upto=2)
    frames[1].taken.add(id=5, partition=1, origin=7, upto=30, messages=b"known")
    frames[1].taken_of.append(10)
    for attempt in range(3):
        if attempt < 2:
            house.engine._disk._room = lambda: Room(0, 1 << 30)
        held = [house.append(frame, sequence=frame.sequence) for frame in frames]
        if attempt < 2:
            await house.acquire(f"partition/{attempt}")  # a group that is written behind it
            assert not any(done.done() for done in held)
        else:
            await asyncio.wait_for(asyncio.gather(*held), 5)
        first, batch, *_ = await house.recovered()
        assert [(taken.id, taken.messages) for taken in first.taken] == [(5, b"known")]
        assert (sorted(batch.dequeued), batch.delivered_upto) == ([0, 2], 2)
        assert list(await house.alive()) == ([10] if attempt < 2 else [10, 20])
        await house.restart()


async def test_recovers_by_partition_in_order(house: House) -> None:
    """A partition's batches come by id, and none of another's."""
    for number, partition in ((30, 1), (10, 1), (20, 2), (40, 1)):
        await house.append(enqueue(number, 1, partition))
    assert list(await house.alive(1)) == [10, 30, 40]
    assert list(await house.alive(2)) == [20]


async def test_an_empty_batch_is_gone(house: House) -> None:
    """The last dequeue takes the batch, its dequeues and its content with it."""
    await house.append(enqueue(10, 3))
    await house.append(dequeue(10, 1))
    await house.append(dequeue(10, 0))
    assert await house.alive() == {10: [2]}
    await house.append(dequeue(10, 2))
    assert await house.alive() == {}
    assert house.commits[-1].dead_batches == [10]
    assert house.commits[-1].dead_contents == [10]
    assert await house.provider.sharing(10) is None
    await house.append(enqueue(10, 3))
    assert await house.alive() == {10: [0, 1, 2]}


async def test_counts_survive_a_restart(house: House) -> None:
    """A batch that was half empty before a restart is gone when the other half goes after it."""
    await house.append(enqueue(10, 3))
    await house.append(dequeue(10, 1))
    await house.append(dequeue(10, 0))
    await house.restart()
    await house.append(dequeue(10, 2))
    assert house.commits[-1].dead_contents == [10]
    assert await house.provider.sharing(10) is None


async def test_shared_content_lives_as_long_as_any_batch(house: House) -> None:
    """Content that several batches refer to is written once and goes with the last of them."""
    first = enqueue(10, 2)
    await house.append(first)
    await house.append(JournalFrame(contents=[content(10, 2)], entries=[entries(11, 2, partition=2, of=10)]))
    await house.append(JournalFrame(entries=[entries(12, 2, partition=3, of=10)]))
    assert [list(changes.contents) for changes in house.commits] == [[10], [], []]
    await house.append(dequeue(10, 0, 1))
    await house.append(dequeue(12, 0, 1))
    (_, batch) = await house.recovered(2)
    assert batch.columns == first.contents[0].columns
    await house.append(dequeue(11, 0, 1))
    assert await house.provider.sharing(10) is None


async def test_annihilation(house: House) -> None:
    """A batch that comes and goes in one group is not written; its floor is."""
    await asyncio.gather(house.append(enqueue(10, 3)), house.append(dequeue(10, 0, 1)), house.append(dequeue(10, 2)))
    (changes,) = house.commits
    assert not changes.contents
    assert not changes.entries
    assert not changes.dequeues
    assert not changes.dead_batches
    (again,) = await house.recovered()
    assert [floor.uid for floor in again.floors] == [10]


async def test_a_batch_emptied_in_part_within_its_group(house: House) -> None:
    """Dequeues of a batch in its own group are written when something of it is left."""
    await asyncio.gather(house.append(enqueue(10, 3)), house.append(dequeue(10, 0)), house.append(dequeue(10, 2)))
    assert len(house.commits) == 1
    assert await house.alive() == {10: [1]}


async def test_waiting_frames_are_one_commit(house: House) -> None:
    """All frames that wait when a commit starts are written as one."""
    await asyncio.gather(*(house.append(enqueue(number * 10, 2)) for number in range(1, 201)))
    assert len(house.commits) == 1
    assert len(await house.alive()) == 200


async def test_frames_collect_while_a_group_is_written(house: House) -> None:
    """Many concurrent writers need few commits."""

    async def writer(writer: int) -> None:
        for turn in range(20):
            await house.append(enqueue(writer * 10_000 + turn * 10, 1), writer, turn + 1)

    await asyncio.gather(*(writer(number) for number in range(1, 51)))
    assert len(house.commits) <= 40
    assert len(await house.alive()) == 1000


async def test_what_is_fenced_is_left_out(house: House) -> None:
    """Of a frame for two partitions, one of which is another's, the rest is written: frames behind it refer to that."""
    epochs = await house.acquire("partition/1", "partition/2")
    mine = Fence(lease="partition/1", epoch=epochs["partition/1"])
    lost = Fence(lease="partition/2", epoch=epochs["partition/2"] - 1)
    await house.append(enqueue(30, 2, partition=2))
    frame = JournalFrame(
        fences=[mine, lost],
        contents=[content(10, 2)],
        entries=[entries(10, 2), entries(11, 2, partition=2, of=10)],
        dequeues=[Dequeue(batch=30, indexes=[0])],
        delivered=[Delivered(batch=30, upto=1)],
        floors=[Floor(partition=1, origin=7, uid=10), Floor(partition=2, origin=7, uid=99)],
        taken=[Taken(id=1, partition=1, origin=7, upto=11), Taken(id=2, partition=2, origin=7, upto=11)],
    )
    following = dequeue(10, 0, fences=[mine])
    ack, after = await asyncio.gather(house.append(frame), house.append(following))
    assert (list(ack.fenced), list(after.fenced)) == (["partition/2"], [])
    for _ in range(2):
        assert await house.alive() == {10: [1]}
        assert await house.alive(2) == {30: [0, 1]}
        first, other = (await house.recovered(1))[0], (await house.recovered(2))[0]
        assert [floor.uid for floor in (*first.floors, *other.floors)] == [10, 30]
        assert [taken.id for taken in (*first.taken, *other.taken)] == [1]
        await house.restart()


async def test_an_entry_is_dequeued_once(house: House) -> None:
    """To dequeue again what is gone removes nothing that lives, in one group, later, and after a restart."""
    await asyncio.gather(house.append(enqueue(10, 3)), house.append(dequeue(10, 0)), house.append(dequeue(10, 0, 0)))
    await house.append(dequeue(10, 0, 7))
    assert await house.alive() == {10: [1, 2]}
    await house.restart()
    await house.append(dequeue(10, 0, 1))
    assert await house.alive() == {10: [2]}
    await asyncio.gather(house.append(dequeue(10, 1)), house.append(dequeue(10, 0)))
    assert await house.alive() == {10: [2]}
    await house.append(dequeue(10, 2))
    assert await house.alive() == {}


async def test_a_new_holder_shuts_the_former_out(house: House) -> None:
    """From the moment that an epoch is given, frames of the one before it are refused, queued ones too."""
    old = (await house.acquire("partition/1"))["partition/1"]
    house.clock.now += 2
    taking = asyncio.ensure_future(house.acquire("partition/1", member="m2"))
    await asyncio.sleep(0)  # the acquisition is queued before the frame
    ack = await house.append(enqueue(10, 1, fences=[Fence(lease="partition/1", epoch=old)]))
    assert list(ack.fenced) == ["partition/1"]
    assert await taking == {"partition/1": old + 1}
    assert await house.alive() == {}


async def test_a_frame_sent_again_counts_once(house: House) -> None:
    """A writer's frame that is on disk is recognised, before and after a restart; the one after it is not."""
    frames = [enqueue(10, 3), dequeue(10, 0), enqueue(20, 1)]
    for sequence, frame in enumerate(frames, 1):
        await house.append(frame, 5, sequence)
    await house.restart()
    for sequence, frame in enumerate(frames, 1):
        assert not (await house.append(frame, 5, sequence)).refused
    assert await house.alive() == {10: [1, 2], 20: [0]}
    await house.append(dequeue(10, 1), 5, 4)
    await house.append(dequeue(10, 2), 6, 1)
    assert await house.alive() == {20: [0]}


async def test_a_frame_sent_again_gets_the_answer_that_it_had(house: House) -> None:
    """A written frame stays written when its lease is gone by now; a refused one stays refused, behind written ones."""
    await house.acquire("partition/1")
    fence = Fence(lease="partition/1", epoch=1)
    frames = [
        enqueue(10, 2, fences=[fence]),
        enqueue(20, 2, fences=[Fence(lease="partition/1", epoch=0)]),
        JournalFrame(
            fences=[fence, Fence(lease="partition/2", epoch=7)],
            contents=[content(40, 1)],
            entries=[entries(40, 1), entries(41, 1, partition=2, of=40)],
        ),
        JournalFrame(entries=[entries(30, 1)]),
        dequeue(10, 0, fences=[fence]),
    ]
    first = [await house.append(frame, 5, sequence) for sequence, frame in enumerate(frames, 1)]
    assert [(list(ack.fenced), bool(ack.refused)) for ack in first] == [
        ([], False),
        (["partition/1"], False),
        (["partition/2"], False),
        ([], True),
        ([], False),
    ]
    house.clock.now += 2
    await house.acquire("partition/1", member="m2")
    await house.restart()
    assert [await house.append(frame, 5, sequence) for sequence, frame in enumerate(frames, 1)] == first
    assert await house.alive() == {10: [1], 40: [0]}


async def test_a_frame_that_cannot_be_written_is_refused(house: House) -> None:
    """References to content that is not there and ids out of range are answered, and stop no other writer."""
    lost = JournalFrame(entries=[entries(10, 1)])
    large = JournalFrame(contents=[content(20, 1)], entries=[EntryBatch(id=1 << 63, content=20, count=1)])
    floor = JournalFrame(floors=[Floor(partition=1, origin=7, uid=1 << 63)])
    taken = JournalFrame(taken=[Taken(id=1 << 63, partition=1, origin=7)])
    for frame in (lost, large, floor, taken):
        assert (await house.append(frame)).refused
    assert (await house.append(enqueue(20, 1), sequence=1 << 63)).refused
    assert not (await house.append(enqueue(30, 1))).refused
    assert list(await house.alive()) == [30]


async def test_delivery_marks_only_grow(house: House) -> None:
    """An older mark changes nothing."""
    await house.append(enqueue(10, 3))
    for upto in (2, 1):
        await house.append(JournalFrame(delivered=[Delivered(batch=10, upto=upto)]))
    _, batch = await house.recovered()
    assert batch.delivered_upto == 2


async def test_what_was_taken_is_known_below_no_floor(house: House) -> None:
    """What may come again is recovered until the floor of its publisher and partition is above; floors may fall."""
    for number, upto, origin, partition in ((1, 20, 7, 1), (2, 30, 7, 1), (3, 20, 8, 1), (4, 20, 7, 2)):
        taken = Taken(id=number, partition=partition, origin=origin, upto=upto, messages=b"opaque")
        await house.append(JournalFrame(taken=[taken]))

    async def known() -> tuple[dict[int, int], list[int]]:
        (again,) = await house.recovered()
        assert {taken.messages for taken in again.taken} == {b"opaque"}
        return {floor.origin: floor.uid for floor in again.floors}, sorted(taken.id for taken in again.taken)

    assert await known() == ({}, [1, 2, 3])
    await house.append(JournalFrame(floors=[Floor(partition=1, origin=7, uid=20)]))
    assert await known() == ({7: 20}, [1, 2, 3])
    await house.append(JournalFrame(floors=[Floor(partition=1, origin=7, uid=21)]))
    await house.restart()
    assert await known() == ({7: 21}, [2, 3])
    await house.append(JournalFrame(floors=[Floor(partition=1, origin=7, uid=5)]))
    assert await known() == ({7: 5}, [2, 3])
    assert [taken.id for taken in (await house.recovered(2))[0].taken] == [4]


async def test_floors_come_in_the_order_in_which_they_changed(house: House) -> None:
    """Whose was changed last is last, however old the publisher is itself; one that is said again was not changed."""
    for origin, uid in ((7, 1), (9, 1), (8, 1), (7, 2), (9, 1)):
        house.run(1)
        await house.append(JournalFrame(floors=[Floor(partition=1, origin=origin, uid=uid)]))
    await house.restart()
    assert [(floor.origin, floor.uid) for floor in (await house.recovered())[0].floors] == [(9, 1), (8, 1), (7, 2)]


async def test_what_is_handed_over_replaces_what_was_written(house: House) -> None:
    """An owner that leaves says all that may come again; what was written before goes, of the same group too."""

    def taken(number: int, origin: int = 7, **more: Any) -> JournalFrame:
        return JournalFrame(taken=[Taken(id=number, partition=1, origin=origin, upto=9, **more)])

    await house.append(taken(1))
    await house.append(taken(2, origin=8))
    await asyncio.gather(house.append(taken(3)), house.append(taken(4, whole=True)), house.append(taken(5)))
    await house.restart()
    assert sorted(row.id for row in (await house.recovered())[0].taken) == [2, 4, 5]


async def test_compaction_goes_on_with_what_fits(house: House) -> None:
    """A content for which there is no room does not keep smaller ones from giving back theirs; it waits."""
    for number, size in ((1, 8000), (1001, 1000), (2001, 1000), (3001, 1000)):
        await house.append(JournalFrame(contents=[content(number, 100, size=size)], entries=[entries(number, 100)]))
        await house.append(dequeue(number, *range(1, 100)))
    now, engine = house.run(61), house.engine
    found = await compact(engine.provider, engine._live, now, 250_000)
    assert [work._content.id for work in found] == [1001, 2001]
    assert [work._content.id for work in await compact(engine.provider, engine._live, now)] == [1, 3001]


async def test_compaction_blanks_bodies_of_dead_entries(house: House) -> None:
    """A large content with little alive loses the dead bodies, keeps positions, and stays recoverable."""
    count = 100
    columns = EntryColumns(queue_id=[1, 2], first=[0, 50], count=[50, 50]).SerializeToString()
    batch = EntryBatch(id=10, partition=1, content=10, count=count, entries=columns)
    await house.append(JournalFrame(contents=[content(10, count, size=2000)], entries=[batch]))
    gone = [index for index in range(count) if index not in {3, 60}]
    await house.append(JournalFrame(dequeues=[Dequeue(batch=10, indexes=gone)]))
    now = house.run(61)
    engine = house.engine
    for work in await compact(engine.provider, engine._live, now):
        engine._committer.submit(work)
    await house.append(enqueue(20, 1))
    await house.restart()
    recovered = (await house.recovered())[1]
    bodies = PublishBatch.FromString(recovered.columns).bodies
    assert len(recovered.columns) < 10_000
    assert {index: body.rstrip(b".") for index, body in enumerate(bodies) if body} == {3: b"3", 60: b"60"}
    ack = await house.append(JournalFrame(entries=[entries(30, 1, of=10)]))
    assert ack.refused, "content that is not whole any more must come again"
    await house.append(JournalFrame(contents=[content(10, count, size=2000)], entries=[entries(30, count, of=10)]))
    assert PublishBatch.FromString((await house.recovered())[2].columns).bodies[0]


async def test_what_is_blanked_and_dead_is_gone(house: House) -> None:
    """A content whose last entry goes in the group that rewrites it leaves nothing behind."""
    await house.append(JournalFrame(contents=[content(10, 100, size=2000)], entries=[entries(10, 100)]))
    await house.append(dequeue(10, *range(99)))
    engine = house.engine
    (work,) = await compact(engine.provider, engine._live, house.run(61))
    engine._committer.submit(work)
    await house.append(dequeue(10, 99))
    assert await engine.provider.sharing(10) is None


async def test_marks_of_long_ago_are_forgotten(house: House) -> None:
    """Tidying drops writers, and what may come again of publishers, that nothing was heard of for long."""
    frame = enqueue(10, 1)
    frame.taken.add(id=1, partition=1, origin=7, upto=10)
    await house.append(frame, writer=1)
    began = house.run(100)
    taken = Taken(id=2, partition=1, origin=9, upto=5)
    await house.append(JournalFrame(floors=[Floor(partition=1, origin=9, uid=5)], taken=[taken]), writer=2)
    await house.provider.tidy(began - 1000, began - 1000)
    (again, _) = await house.recovered()
    assert [floor.origin for floor in again.floors] == [9]
    assert [taken.id for taken in again.taken] == [2]
    assert list(await house.provider.writers()) == [2]
