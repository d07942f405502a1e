"""One frame at a time, none too large."""

from __future__ import annotations

from services.queue.message import Run
from services.queue.outbox import Outbox

RUN = Run("/", "ex", "key", "amqp-0-9", False, 0, None)


def test_wakes_once() -> None:
    """The writer is woken when there is something to say after there was nothing."""
    woken: list[int] = []
    outbox = Outbox(lambda: woken.append(1))
    assert outbox.take() is None
    outbox.frame.done.append(1)
    outbox.frame.done.append(2)
    frame = outbox.take()
    assert frame is not None
    assert (list(frame.done), len(woken), outbox.pending) == ([1, 2], 1, False)


def test_runs_merge() -> None:
    """What continues a run is part of it."""
    outbox = Outbox(lambda: None)
    for uid in (1, 2):
        outbox.deliveries.add(5, RUN, False, [uid], b"p", [b"body"])
    outbox.deliveries.add(5, RUN, True, [3], b"p", [b"body"])
    frame = outbox.take()
    assert frame is not None
    assert [(run.count, run.redelivered) for run in frame.deliveries.runs] == [(2, False), (1, True)]


def test_large_deliveries_are_split() -> None:
    """A frame that would be too large is split within a run, and the end of its consumer waits for the rest."""
    outbox = Outbox(lambda: None)
    outbox.deliveries.add(5, RUN, False, [1, 2, 3], [b"a", b"b", b"c"], [bytes(9 << 20)] * 3)
    outbox.frame.detached.append(5)
    frames = []
    while frame := outbox.take():
        frames.append(frame)
    assert [list(frame.deliveries.uids) for frame in frames] == [[1], [2], [3]]
    assert [list(frame.deliveries.properties) for frame in frames] == [[b"a"], [b"b"], [b"c"]]
    assert [list(frame.detached) for frame in frames] == [[], [], [5]]
