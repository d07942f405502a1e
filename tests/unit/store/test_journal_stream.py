"""One writer's stream: reads ahead only so far, ends when everything is answered."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

from services.rpc.store_pb2 import JournalAck, JournalFrame
from services.store import journal as journal_module
from services.store.journal import Stream
from tests.support.store_house import House, dequeue, enqueue


class SlowJournal:
    """Takes frames, and answers when the test says so."""

    def __init__(self) -> None:
        self.taken: list[tuple[JournalFrame, Callable[[JournalAck], None]]] = []

    def append(
        self,
        writer: int,
        frame: JournalFrame,
        answer: Callable[[JournalAck], None],
        size: int,
        aside: Callable[[], None],
    ) -> None:
        self.taken.append((frame, answer))
        self.aside = aside

    def answer(self) -> None:
        frame, answer = self.taken.pop(0)
        answer(JournalAck(sequence=frame.sequence))


async def frames(*all_: JournalFrame) -> AsyncIterator[JournalFrame]:
    for frame in all_:
        yield frame


async def test_a_writer_that_ended_gets_all_answers_and_the_end() -> None:
    """The answers end with the last of them, though it comes after the writer's last word."""
    journal = SlowJournal()
    stream = Stream(journal)  # type: ignore[arg-type]
    await stream.read(1, frames(JournalFrame(sequence=1), JournalFrame(sequence=2)))
    acks = stream.acks()
    for sequence in (1, 2):
        asyncio.get_running_loop().call_later(0.01, journal.answer)
        assert (await asyncio.wait_for(anext(acks), 1)).sequence == sequence
    assert await asyncio.wait_for(anext(acks, None), 1) is None


async def test_reads_ahead_only_so_far() -> None:
    """A writer that is faster than the disk is read on when its earlier frames are answered."""
    journal = SlowJournal()
    stream = Stream(journal)  # type: ignore[arg-type]
    large = [enqueue(number, 1, sequence=number) for number in range(1, 4)]
    for frame in large:
        frame.contents[0].columns = bytes(journal_module.READ_AHEAD // 2)
    reading = asyncio.create_task(stream.read(1, frames(*large)))
    await asyncio.sleep(0.01)
    assert [frame.sequence for frame, _ in journal.taken] == [1, 2]
    journal.answer()
    await asyncio.sleep(0.01)
    assert [frame.sequence for frame, _ in journal.taken] == [2, 3]
    journal.answer()
    await asyncio.wait_for(reading, 1)


async def test_reads_on_behind_what_waits_for_room() -> None:
    """Frames that free room are behind it: one frame that waits for room is not counted, in either outcome."""
    journal = SlowJournal()
    stream = Stream(journal)  # type: ignore[arg-type]
    large = [enqueue(number, 1, sequence=number) for number in range(1, 5)]
    for frame in large:
        frame.contents[0].columns = bytes(journal_module.READ_AHEAD + 1)
    reading = asyncio.create_task(stream.read(1, frames(*large)))
    await asyncio.sleep(0.01)
    assert len(journal.taken) == 1
    journal.aside()
    await asyncio.sleep(0.01)
    assert len(journal.taken) == 2
    journal.answer()
    await asyncio.sleep(0.01)
    assert [frame.sequence for frame, _ in journal.taken] == [2]
    reading.cancel()


async def test_a_bug_ends_the_engine(house: House) -> None:
    """When the commit loop itself fails, the engine's owner is told: a store that answers no request must not live."""

    class Broken:
        def prepare(self, draft: object) -> None:
            raise ZeroDivisionError

        def written(self) -> None: ...

    house.engine._committer.submit(Broken())
    await asyncio.sleep(0.01)
    assert [type(failure) for failure in house.failures] == [ZeroDivisionError]
    assert not house.append(dequeue(10, 0)).done()
