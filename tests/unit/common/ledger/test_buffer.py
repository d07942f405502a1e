"""Batches that wait for the bus."""

from __future__ import annotations

from services.common.ledger.buffer import Buffer
from services.common.ledger.encoding import Sealed


def test_the_oldest_go_when_there_is_no_room() -> None:
    """The buffer keeps the newest batches that fit, and counts the rows of the others."""
    buffer = Buffer(25)
    for number in range(4):
        buffer.append(Sealed(number * 10 + 1, 10, bytes(10)))
    assert buffer.oldest.first_row == 21
    assert buffer.given_up == 20


def test_a_batch_that_was_given_up_on_its_way_takes_no_other_with_it() -> None:
    """What arrives after it was given up leaves the buffer as it is."""
    buffer = Buffer(15)
    first = Sealed(1, 1, bytes(10))
    buffer.append(first)
    buffer.append(Sealed(2, 1, bytes(10)))
    buffer.sent(first)
    assert buffer.oldest.first_row == 2
    buffer.sent(buffer.oldest)
    assert not buffer
