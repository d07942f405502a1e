"""A partition that was lost with much left to write down, and is here again."""

from __future__ import annotations

import pytest

from services.queue.journal.ticket import Ticket, Unheard
from services.queue.links.peer_terms import PeerTerms
from services.queue.partitions.partition import PartitionState
from tests.unit.queue.test_journal_refusals import Refuser, alternating
from tests.unit.queue.test_large_queues import Desk


async def test_rest_of_a_former_term(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is left out, and new messages go under the fence of their own term.

    Under the former one they would be refused though the partition is held, and confirmed, since they were taken, when
    they come again: without being on disk.
    """
    desk = Desk(monkeypatch)
    old, new = desk.partition(0), desk.partition(0, epoch=3)
    desk.drop(old, *range(12))
    desk.wait("the former term's")
    assert await desk.turn() == list(range(10))
    old.state = PartitionState.GONE
    answers = Refuser()
    ticket = Ticket(answers, 1, set(), Unheard(), PeerTerms({}))
    desk.answer()
    desk.writer.add(alternating(), {0: new}, ticket)
    ticket.part_done()
    assert await desk.turn() == []
    frame, _ = desk.frames[-1]
    assert ([fence.epoch for fence in frame.fences], len(frame.entries)) == ([3], 1)
    desk.answer()
    await desk.turn()
    assert (answers.finished, answers.said, desk.safe) == ([1], [], ["the former term's"])
