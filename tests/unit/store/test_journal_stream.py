"""One writer's stream: reads ahead only so far, ends when everything is answered."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

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


class Writer:
    """What its stream tells it."""

    def __init__(self, journal: SlowJournal) -> None:
        self.acks: list[int] = []
        self.held = False
        self.stream = Stream(journal, 1, lambda ack: self.acks.append(ack.sequence), self._hold)  # type: ignore[arg-type]

    def _hold(self, held: bool) -> None:
        assert held is not self.held
        self.held = held


def large(count: int, size: int) -> list[JournalFrame]:
    """Frames of so many bytes."""
    frames = [enqueue(number, 1, sequence=number) for number in range(1, count + 1)]
    for frame in frames:
        frame.contents[0].columns = bytes(size)
    return frames


async def test_a_writer_that_ended_gets_all_answers_and_the_end() -> None:
    """Each as soon as it is there; the end comes with the last of them, though that is after the writer's last word."""
    journal = SlowJournal()
    writer = Writer(journal)
    for sequence in (1, 2):
        writer.stream.take(JournalFrame(sequence=sequence))
    ended = asyncio.ensure_future(writer.stream.answered())
    for answered in ([1], [1, 2]):
        await asyncio.sleep(0)
        assert not ended.done()
        journal.answer()
        assert writer.acks == answered
    await asyncio.wait_for(ended, 10)
    await asyncio.wait_for(writer.stream.answered(), 10)


async def test_reads_ahead_only_so_far() -> None:
    """A writer that is faster than the disk is held until its earlier frames are answered."""
    journal = SlowJournal()
    writer = Writer(journal)
    for number, frame in enumerate(large(3, journal_module.READ_AHEAD // 2), 1):
        writer.stream.take(frame)
        assert writer.held is (number > 1)
    journal.answer()
    assert writer.held
    journal.answer()
    assert not writer.held


async def test_reads_on_behind_what_waits_for_room() -> None:
    """Frames that free room are behind it: one frame that waits for room is not counted, in either outcome."""
    journal = SlowJournal()
    writer = Writer(journal)
    for frame in large(2, journal_module.READ_AHEAD + 1):
        writer.stream.take(frame)
        assert writer.held
        journal.aside()
        assert not writer.held
    journal.answer()
    assert (writer.held, writer.acks) == (False, [1])


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
