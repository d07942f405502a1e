"""What flows beside a client that does one thing after the other is what the scenarios say."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

from benchmarks.beside import BESIDE, FLOOD, RATE, WINDOW
from benchmarks.streams import KEYS


def test_each_queue_gets_persistent_and_transient_messages() -> None:
    """Keys and persistence alternate by other numbers, so that no queue is of one kind."""
    stream = FLOOD.stream
    kinds = defaultdict(set)
    for number in range(10 * KEYS):
        assert stream.key
        kinds[stream.key(number)].add(stream.properties(number))
    assert len(kinds) == KEYS
    assert all(len(each) == 2 for each in kinds.values())


def test_a_producer_has_no_more_unconfirmed_than_the_window() -> None:
    """So a flood's messages on their way are bounded, however fast the broker takes them."""
    assert {load.unconfirmed for _, load, _ in BESIDE.values()} == {WINDOW}


def test_messages_at_a_rate_are_sent_in_small_chunks() -> None:
    """A paced flood comes evenly: no chunk holds more than a few milliseconds of it, and none is empty."""
    assert 0 < replace(FLOOD, rate=RATE).chunk_messages <= RATE / 100
    assert replace(FLOOD, rate=1).chunk_messages == 1
