"""How often a message was delivered before: each consumer is told of each."""

from __future__ import annotations

from services.rpc import queue_pb2 as pb
from tests.support.queue_machine import Machine


def test_those_that_came_back() -> None:
    """What failed counts, what was given back as if it had not been delivered does not."""
    machine = Machine()
    machine.publish(4)
    machine.consumer()
    for outcome, uids in ((pb.RELEASE, [2]), (pb.RELEASE, [1, 2]), (pb.RESTORE, [3])):
        machine.link.taken()
        machine.queue.settle(outcome, uids, 0)
    machine.link.taken()
    machine.queue.settle(pb.RELEASE, [1, 2, 3, 4], 0)
    runs = [(run.count, run.attempts, run.redelivered) for run in machine.link.deliveries.runs]
    assert runs == [(1, 2, True), (1, 3, True), (2, 1, True)]
