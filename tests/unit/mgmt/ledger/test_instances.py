"""Row numbers: what is new, what is missing, which instances are silent."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.mgmt.ledger.instances import HEARD_AGAIN, SILENT_AFTER, Gap, Instances
from services.rpc.ledger_pb2 import LedgerBatch


def batch(first: int, rows: int, *, last: bool = False) -> LedgerBatch:
    return LedgerBatch(service="queue", instance="a", first_row=first, stages=[1] * rows, last=last)


def test_rows_in_order_are_new_and_nothing_is_missing() -> None:
    """Batches that follow one another are taken without a gap."""
    instances = Instances()
    assert [instances.heard(batch(*each), 0, 0) for each in ((1, 3), (4, 2), (6, 0))] == [(True, [])] * 3


def test_missing_numbers_are_a_gap() -> None:
    """Numbers that never came are told, with how many they are."""
    instances = Instances()
    instances.heard(batch(1, 3), 0, 0)
    assert instances.heard(batch(10, 1), 0, 0) == (True, [Gap("queue", "a", 4, 9, 6, "given_up")])


@given(st.lists(st.integers(1, 5), min_size=1), st.data())
def test_what_comes_again_is_known(sizes: list[int], data: st.DataObject) -> None:
    """Rows that were filed before, also by a former process, are not new."""
    batches, first = [], 1
    for size in sizes:
        batches.append((first, size))
        first += size
    kept = data.draw(st.integers(0, len(batches)))
    instances = Instances()
    for each in batches[:kept]:
        assert instances.heard(batch(*each), 0, 0) == (True, [])
    instances = Instances(instances.state)
    assert [instances.heard(batch(*each), 0, 0)[0] for each in batches] == [
        number >= kept for number in range(len(batches))
    ]


def test_silence_is_a_gap_of_unknown_size_once() -> None:
    """An instance that vanished is reported once; the time while the bus was away does not count."""
    instances = Instances(Instances({"a": {"service": "queue", "next_row": 5, "ended": 0.0}}).state)
    instances.listen_again(100.0)
    assert instances.silent(100.0 + SILENT_AFTER, 1.0) == []
    assert instances.silent(101.0 + SILENT_AFTER, 1.0) == [Gap("queue", "a", 5, 5, -1, "silent")]
    assert instances.silent(200.0 + SILENT_AFTER, 2.0) == []


def test_a_gap_says_since_when() -> None:
    """A gap begins where what was told ended: with the last row before it, or a later sign of life."""
    instances = Instances()
    instances.heard(LedgerBatch(instance="a", first_row=1, stages=[1, 1], times_us=[50, 70]), 0, 0)
    _, [gap] = instances.heard(LedgerBatch(instance="a", first_row=5, stages=[1], times_us=[200]), 0, 0)
    assert gap.since_us == 70
    instances.heard(LedgerBatch(instance="a", first_row=6, time_us=900), 0, 0)
    instances.heard(LedgerBatch(instance="a", first_row=6), 0, 0)  # an older release, which does not say
    assert [gap.since_us for gap in instances.silent(SILENT_AFTER + 1, 1.0)] == [900]


def test_since_when_is_known_to_the_next() -> None:
    """A mgmt process that dies with another process leaves until when that one had told everything."""
    former = Instances()
    former.heard(LedgerBatch(service="queue", instance="a", first_row=1, stages=[1], times_us=[50]), 0, 0)
    instances = Instances(former.state, former.told)
    assert [gap.since_us for gap in instances.silent(SILENT_AFTER + 1, 1.0)] == []
    assert [gap.since_us for gap in instances.silent(2 * SILENT_AFTER + 2, 1.0)] == [50]


@pytest.mark.parametrize(
    ("comes", "told"),
    [
        (batch(5, 2), []),
        (batch(5, 0), []),
        (batch(5, 0, last=True), []),
        (batch(8, 1), [Gap("queue", "a", 5, 7, 3, "given_up")]),
    ],
    ids=["rows", "a sign of life", "that it ends", "later rows"],
)
def test_one_that_was_only_cut_off(comes: LedgerBatch, told: list[Gap]) -> None:
    """An instance that was missed and is heard again takes that back, once: its rows came, or are a gap."""
    instances = Instances()
    instances.heard(batch(1, 4), 0.0, 0.0)
    assert [gap.reason for gap in instances.silent(SILENT_AFTER + 1, 1000.0)] == ["silent"]
    instances = Instances(instances.state)  # of another mgmt process
    assert instances.heard(comes, 40.0, 1010.0) == (True, [*told, Gap("queue", "a", 5, 5, 0, HEARD_AGAIN)])
    if not comes.last:
        assert [gap.reason for gap in instances.heard(batch(20, 1), 50.0, 1020.0)[1]] == ["given_up"]
        assert [gap.reason for gap in instances.silent(51 + SILENT_AFTER, 2000.0)] == ["silent"]


def test_what_comes_again_of_one_that_is_dead() -> None:
    """Rows that the bus gives once more prove nothing."""
    instances = Instances()
    instances.heard(batch(1, 4), 0.0, 0.0)
    instances.silent(SILENT_AFTER + 1, 1000.0)
    assert instances.heard(batch(1, 4), 40.0, 1010.0) == (False, [])


def test_an_instance_that_said_that_it_ends_is_not_silent() -> None:
    """The last batch ends an instance; after a day it is forgotten."""
    instances = Instances()
    instances.heard(batch(1, 1), 0.0, 1000.0)
    assert (instances.unended("queue"), instances.unended("gateway")) == ({"a"}, set())
    instances.heard(batch(2, 0, last=True), 0.0, 1000.0)
    assert not instances.unended("queue")
    assert instances.silent(1e6, 1001.0) == []
    assert instances.state
    instances.silent(1e6, 1000.0 + 90_000)
    assert not instances.state
