"""Acknowledgements on their way in."""

from __future__ import annotations

import pytest
from pamqp import commands

from services.gateway.outcomes import ACCEPTED, FAILED, REJECTED
from services.gateway.vocabulary import Settle
from tests.support.amqp_playbook import Playbook, written


def _acks(*tags: int) -> bytes:
    return written(1, *(commands.Basic.Ack(tag, False) for tag in tags))


@pytest.mark.parametrize(
    ("method", "settle"),
    [
        (commands.Basic.Ack(7, False), Settle(1, 7, 7, ACCEPTED)),
        (commands.Basic.Ack(7, True), Settle(1, 0, 7, ACCEPTED)),
        (commands.Basic.Ack(0, True), Settle(1, 0, 0, ACCEPTED)),
        (commands.Basic.Reject(7, True), Settle(1, 7, 7, FAILED)),
        (commands.Basic.Reject(7, False), Settle(1, 7, 7, REJECTED)),
        (commands.Basic.Nack(7, False, True), Settle(1, 7, 7, FAILED)),
        (commands.Basic.Nack(7, False, False), Settle(1, 7, 7, REJECTED)),
        (commands.Basic.Nack(7, True, True), Settle(1, 0, 7, FAILED)),
        (commands.Basic.Nack(0, True, False), Settle(1, 0, 0, REJECTED)),
    ],
)
def test_meanings(method: object, settle: Settle) -> None:
    """What each method says of which deliveries."""
    assert Playbook().running().client(1, method) == [settle]


def test_ascending_acks_are_one_range() -> None:
    """Thousands of acknowledgements in a row are one request."""
    assert Playbook().running().engine.receive(_acks(*range(5, 2005))) == [Settle(1, 5, 2004, ACCEPTED)]


def test_gaps_and_steps_back_begin_another_range() -> None:
    """Only what is consecutive is said to be."""
    requests = Playbook().running().engine.receive(_acks(1, 2, 4, 5, 3))
    assert [(request.first, request.last) for request in requests if isinstance(request, Settle)] == [
        (1, 2),
        (4, 5),
        (3, 3),
    ]


def test_outcomes_are_kept_apart() -> None:
    """A reject between acknowledgements ends the range."""
    data = _acks(1) + written(1, commands.Basic.Reject(2, False), commands.Basic.Nack(3, False, False)) + _acks(4)
    assert Playbook().running().engine.receive(data) == [
        Settle(1, 1, 1, ACCEPTED),
        Settle(1, 2, 3, REJECTED),
        Settle(1, 4, 4, ACCEPTED),
    ]


def test_channels_are_kept_apart() -> None:
    """Tags belong to channels."""
    data = _acks(1) + written(2, commands.Basic.Ack(2, False))
    assert len(Playbook().running(1, 2).engine.receive(data)) == 2


@pytest.mark.parametrize(
    "method", [commands.Basic.Ack(0, False), commands.Basic.Reject(0, True), commands.Basic.Nack(0, False, True)]
)
def test_tag_zero_alone_fails_the_precondition(method: commands.Basic.Ack) -> None:
    """There is no delivery 0, and 0 means all only together with multiple."""
    book = Playbook().running()
    book.ends(book.client(1, method))
    assert book.closed_channel() == (406, 60, method.index & 0xFFFF)


def test_unused_bits_are_ignored() -> None:
    """Bits that the method does not have say nothing."""
    data = bytearray(_acks(7))
    data[-2] = 0xF0
    assert Playbook().running().engine.receive(bytes(data)) == [Settle(1, 7, 7, ACCEPTED)]
