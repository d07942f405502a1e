"""Which gaps may hide what, by hand. No Spark."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from spark.terms import Gap, Term, Told, makers, terms, troubled

S = 1_000_000
A, B, C = "queue-a", "queue-b", "queue-c"


def told(*owners: tuple[int, str, int]) -> list[Told]:
    """Epochs of partition 1: number, owner, when it was first heard of in seconds."""
    return [Told(1, epoch, instance, began * S) for epoch, instance, began in owners]


def gap(instance: str, since: int | None, noticed: int, reason: str = "silent", service: str = "queue") -> Gap:
    return Gap(service, instance, reason, noticed * S, None if since is None else since * S)


def first(found: Sequence[Term]) -> Term:
    return next(term for term in found if term.epoch == 1)


HEARD = {A: 90 * S, B: 500 * S, C: 500 * S}


@pytest.mark.parametrize(
    ("gaps", "expected"),
    [
        ([], (None, None, "")),
        ([gap(A, 95, 130)], (130 * S, 95 * S, A)),
        ([gap(A, None, 130)], (130 * S, 90 * S, A)),  # an older record: all rows up to the last came
        ([gap(A, None, 130, "given_up")], (130 * S, None, A)),
        ([gap(A, 300, 330)], (None, None, "")),  # long after it was followed
        ([gap(B, 300, 330)], (None, None, "")),  # what it found is on record
        ([gap(B, 90, 110, "given_up")], (110 * S, 90 * S, B)),  # which may be what it found
        ([gap(C, 95, 130)], (None, None, "")),  # another process
        ([gap("queue-x", 95, 130)], (None, None, "")),  # no owner was between the two
        ([gap("gateway-1", 95, 130, service="gateway")], (None, None, "")),
        ([gap(A, 95, 130), gap(B, 90, 140, "given_up")], (140 * S, 90 * S, A)),
    ],
)
def test_what_hides_copies_of_a_former_owner(gaps: list[Gap], expected: tuple[int | None, int | None, str]) -> None:
    """Of two owners, the first died or was followed at 100: the gaps that may hide what became of its messages."""
    term = first(terms(told((1, A, 0), (2, B, 100)), gaps, HEARD))
    assert (term.hide_time, term.hide_since, "".join(one.words.partition(" ")[0] for one in term.gaps[:1])) == expected
    assert (term.current_epoch, term.term_began, term.owner_ended) == (2, 100 * S, None)


def test_missing_epoch() -> None:
    """An epoch without rows may have belonged to any queue process that has a gap."""
    found = terms(told((1, A, 0), (3, B, 100)), [gap(C, 50, 130)], HEARD)
    assert first(found).hide_time == 130 * S


@pytest.mark.parametrize(
    ("since", "noticed", "hidden"), [(98, 130, True), (10, 40, False), (200, 230, False), (None, 130, True)]
)
def test_sent_meanwhile(since: int | None, noticed: int, hidden: bool) -> None:
    """Only a gateway's gap that meets the owner's hides that a copy was sent."""
    gaps = [gap(A, 95, 130), gap("gateway-1", since, noticed, service="gateway")]
    assert first(terms(told((1, A, 0), (2, B, 100)), gaps, HEARD)).sent_hidden is hidden


def test_sent_long_after() -> None:
    """A gateway that died after the next owner had said what it has, hides nothing of what that one did not have."""
    gaps = [gap(A, 95, 130), gap("gateway-1", 200, 230, service="gateway")]
    owners = told((1, A, 0), (2, B, 100), (3, C, 300))
    assert not first(terms(owners, gaps, HEARD)).sent_hidden
    # But where it is not known what that one found, it may have been sent later.
    assert first(terms(owners, [*gaps, gap(B, 90, 140, "given_up")], HEARD)).sent_hidden


def test_never_enqueued() -> None:
    """Of copies that no owner told of, the gap of each owner of their partition may be to blame, for its term."""
    gaps = [gap(B, 300, 330), gap(A, 95, 130), gap(A, 200, 230), gap(C, 1, 2)]
    (unplaced,) = (one for one in terms(told((1, A, 0), (2, B, 100)), gaps, HEARD) if one.epoch == 0)
    found = [(one.words.partition(" ")[0], one.since // S, one.time // S) for one in unplaced.gaps]
    assert found == [(A, 95, 101), (B, 300, 330)]
    assert (unplaced.owner_ended, unplaced.hide_time) == (None, None)


def test_never_enqueued_by_an_unknown_owner() -> None:
    """Where an epoch has no rows, any queue process may have been the owner meanwhile."""
    gaps = [gap(C, 50, 130), gap(C, 150, 180)]
    (unplaced,) = (one for one in terms(told((1, A, 0), (3, B, 100)), gaps, HEARD) if one.epoch == 0)
    assert [(one.since // S, one.time // S) for one in unplaced.gaps] == [(50, 101)]


@pytest.mark.parametrize(
    ("handed", "gaps", "blamed"),
    [
        (None, [], []),
        (92, [], [92]),
        (None, [gap(A, 95, 130)], [95]),
        (None, [gap(A, 95, 130, "given_up")], []),
        (None, [gap(A, 40, 70)], []),  # it was heard of since
        (50, [gap(A, 95, 130)], [50]),
    ],
)
def test_who_follows_the_last_owner(handed: int | None, gaps: list[Gap], blamed: list[int]) -> None:
    """Since it handed over, or died, any queue process may have had the partition, and not been able to tell."""
    owner = Told(1, 1, A, 0, None if handed is None else handed * S)
    (unplaced,) = (one for one in terms([owner], [gap(C, 30, 200), *gaps], HEARD) if one.epoch == 0)
    assert [one.since // S for one in unplaced.gaps if one.words.startswith(C)] == blamed


def test_very_many_gaps() -> None:
    """None is left out where it decides whether a message is lost; else the first are named, and the last."""
    gaps = [gap(A, at, at + 1) for at in range(0, 3000, 10)]
    found = terms(told((1, A, 500)), gaps, {A: 5000 * S})
    (unplaced, term) = found
    assert (len(unplaced.gaps), len(term.own_gaps), len(term.gaps)) == (300, 300, 200)
    assert (term.gaps[0].since, term.gaps[-1].time, term.hide_time) == (500 * S, 2991 * S, 2991 * S)


def test_makers() -> None:
    """Gaps of gateways by their origin; a queue process has none in its name, though that may be all digits."""
    gaps = [gap("gateway-7", 1, 2, service="gateway"), gap("gateway-x", 1, 2, service="gateway"), gap("queue-7", 1, 2)]
    assert [(origin, len(its)) for origin, its in makers(gaps).items()] == [(7, 1)]


def test_left_alone() -> None:
    """An owner that was missed, and had no successor, has ended; not if it was heard of again."""
    term = first(terms(told((1, A, 0)), [gap(A, 95, 130)], HEARD))
    assert (term.owner_ended, term.hide_time) == (130 * S, 130 * S)
    (term,) = (one for one in terms(told((1, A, 0)), [gap(A, 95, 130), gap("queue-x", 99, 140)], HEARD) if one.epoch)
    assert term.hide_time == 140 * S  # it may have followed
    term = first(terms(told((1, B, 0)), [gap(B, 95, 130)], HEARD))
    assert term.owner_ended is None


def test_troubled() -> None:
    """Partitions with one owner that told everything need no second look."""
    found = terms([*told((1, A, 0), (2, B, 100)), Told(2, 1, C, 0), Told(3, 1, A, 0)], [gap(A, 95, 130)], HEARD)
    assert troubled(found) == [1, 3]
