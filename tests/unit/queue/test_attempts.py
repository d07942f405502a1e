"""How often a message was delivered before: each consumer is told of each."""

from __future__ import annotations

from unittest.mock import Mock, call

from services.queue.links.settling import settle
from services.rpc import queue_pb2 as pb
from tests.support.queue_machine import Machine


def test_those_that_came_back() -> None:
    """What failed counts, what was given back as if it had not been delivered does not."""
    machine = Machine()
    machine.publish(4)
    machine.consumer()
    for outcome, uids in ((pb.RELEASE, [2]), (pb.RELEASE, [1, 2]), (pb.RESTORE, [3]), (pb.RETURN, [4])):
        machine.link.taken()
        machine.queue.settle(outcome, uids, 0)
    machine.link.taken()
    machine.queue.settle(pb.RELEASE, [1, 2, 3, 4], 0)
    runs = [(run.count, run.attempts, run.redelivered) for run in machine.link.deliveries.runs]
    assert runs == [(1, 2, True), (1, 3, True), (2, 1, True)]


def test_what_the_record_says() -> None:
    """What a client gave back it had, though it has not tried it."""
    machine = Machine()
    machine.publish(2)
    machine.consumer(messages=2)
    machine.queue._entries.record = record = Mock()
    machine.queue.settle(pb.RETURN, [1], 0)
    machine.queue.settle(pb.RESTORE, [2], 0)
    assert record.requeued.mock_calls == [call([1], "released"), call([2], "not_sent")]


def test_given_back_untried() -> None:
    """A gateway says so of what it calls restored: a process of a former release would not know another word."""
    queue, host = Mock(), Mock()
    host.registry.settling.return_value, queue.not_others.side_effect = queue, lambda uids, _: list(uids)
    host.claims.give_back.return_value, holder = False, Mock()
    holder.awaiting.claim_of.return_value = None
    for had in (True, False):
        settle(host, holder, Mock(), pb.Settle(queue_id=1, outcome=pb.RESTORE, had=had, uids=[1]), 0, Mock())
    assert queue.settle.mock_calls == [call(pb.RETURN, [1], 0), call(pb.RESTORE, [1], 0)]
