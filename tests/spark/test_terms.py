"""Which gaps may hide what, by hand. No Spark."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from spark.terms import Blamed, Gap, Term, Told, makers, terms, troubled

S = 1_000_000
A, B, C = "queue-a", "queue-b", "queue-c"


def told(*owners: tuple[int, str, int]) -> list[Told]:
    """Epochs of partition 1: number, owner, when it took the partition over, and was first heard of, in seconds."""
    return [Told(1, epoch, instance, began * S, None, began * S) for epoch, instance, began in owners]


def gap(instance: str, since: int | None, noticed: int, reason: str = "silent", service: str = "queue") -> Gap:
    return Gap(service, instance, reason, noticed * S, None if since is None else since * S)


def first(found: Sequence[Term]) -> Term:
    return next(term for term in found if term.epoch == 1)


def named(blamed: Sequence[Blamed]) -> list[tuple[str, int | None, int]]:
    """Whose, since and until when."""
    begins = (None if one.since < 0 else one.since // S for one in blamed)
    return [(one.words.partition(" ")[0], since, one.time // S) for one, since in zip(blamed, begins, strict=True)]


HEARD = {A: 90 * S, B: 500 * S, C: 500 * S}


@pytest.mark.parametrize(
    ("gaps", "hiding", "found"),
    [
        ([], [], []),
        ([gap(A, 95, 130)], [(A, 95, 130)], []),
        ([gap(A, None, 130)], [(A, 90, 130)], []),  # an older record: all rows up to the last came
        ([gap(A, None, 130, "given_up")], [(A, None, 130)], []),
        ([gap(A, 300, 330)], [], []),  # long after it was followed
        ([gap(B, 300, 330)], [], []),  # what it found is on record
        ([gap(B, 90, 110, "given_up")], [], [(B, 90, 110)]),  # which may be what it found
        ([gap(B, 50, 70, "given_up")], [], []),  # that was over when it came
        ([gap(C, 95, 130)], [], []),  # another process
        ([gap("queue-x", 95, 130)], [], []),  # no owner was between the two
        ([gap("gateway-1", 95, 130, service="gateway")], [], []),
        ([gap(A, 95, 130), gap(B, 90, 140, "given_up")], [(A, 95, 130)], [(B, 90, 140)]),
        # Of what was heard of last at 15 it is known until 20 what became of it, of what was at 50 until 95.
        ([gap(A, 20, 40, "given_up"), gap(A, 95, 130)], [(A, 20, 40), (A, 95, 130)], []),
        # The one that was noticed later begins sooner.
        ([gap(A, 60, 100, "given_up"), gap(A, 20, 130, "given_up")], [(A, 20, 100), (A, 20, 130)], []),
    ],
)
def test_what_hides_copies_of_a_former_owner(
    gaps: list[Gap], hiding: list[tuple[str, int | None, int]], found: list[tuple[str, int, int]]
) -> None:
    """Of two owners, the first died or was followed at 100: the gaps that may hide what became of its messages."""
    term = first(terms(told((1, A, 0), (2, B, 100)), gaps, HEARD))
    assert (named(term.gaps), named(term.found_gaps)) == (hiding, found)
    assert (term.current_epoch, term.term_began, term.owner_ended) == (2, 100 * S, None)


def test_missing_epoch() -> None:
    """An epoch without rows may have belonged to any queue process that has a gap."""
    found = terms(told((1, A, 0), (3, B, 100)), [gap(C, 50, 130)], HEARD)
    assert named(first(found).found_gaps) == [(C, 50, 130)]


def test_missing_takeover() -> None:
    """Of an owner that told of the partition, but not of its takeover, it is not known when it said what it has."""
    owners = [*told((1, A, 0)), Told(1, 2, B, 100 * S)]
    assert named(first(terms(owners, [gap(B, 40, 60)], HEARD)).found_gaps) == [(B, 40, 60)]


@pytest.mark.parametrize(
    ("owners", "untold"),
    [
        ([Told(1, 2, B, 100 * S)], False),  # of an older release
        ([Told(1, 2, B, 100 * S), *told((3, C, 200))], True),
        ([*told((2, B, 100)), Told(1, 3, C, 200 * S)], True),
        (told((3, C, 200)), False),  # who claimed epoch 2 had nothing to say
        (told((2, B, 100), (3, C, 200)), False),
        ([Told(1, 2, B, 100 * S), Told(2, 2, C, 0, None, 0)], True),
    ],
)
def test_untold_takeover(owners: list[Told], untold: bool) -> None:
    """Where takeovers are on record, an owner that told of the partition, and not of its own, may have found it."""
    term = first(terms([Told(1, 1, A, 0), *owners], [], HEARD))
    assert (term.untold, term.found_gaps) == (untold, [])


def test_slow_takeover() -> None:
    """Whatever it told of the partition before, an owner says what it has when it has taken over."""
    owners = [*told((1, A, 0)), Told(1, 2, B, 100 * S, None, 110 * S)]
    term = first(terms(owners, [gap(B, 107, 115, "given_up")], HEARD))
    assert (named(term.found_gaps), term.term_began) == ([(B, 107, 115)], 110 * S)


@pytest.mark.parametrize(
    ("since", "noticed", "until"), [(98, 130, 130 * S), (10, 40, 40 * S), (200, 230, None), (None, 130, 130 * S)]
)
def test_sent_meanwhile(since: int | None, noticed: int, until: int | None) -> None:
    """Only a gateway's gap that began before the next owner came hides that a copy was sent; until it was noticed."""
    gaps = [gap(A, 95, 130), gap("gateway-1", since, noticed, service="gateway")]
    assert first(terms(told((1, A, 0), (2, B, 100)), gaps, HEARD)).sent_until == until
    assert first(terms(told((1, A, 0), (2, B, 100)), gaps[1:], HEARD)).sent_until is None


def test_never_enqueued() -> None:
    """Of copies that no owner told of, the gap of each owner of their partition may be to blame, for its term."""
    gaps = [gap(B, 300, 330), gap(A, 95, 130), gap(A, 200, 230), gap(C, 1, 2)]
    (unplaced,) = (one for one in terms(told((1, A, 0), (2, B, 100)), gaps, HEARD) if one.epoch == 0)
    found = [(one.words.partition(" ")[0], one.since // S, one.time // S) for one in unplaced.gaps]
    assert found == [(A, 95, 101), (B, 300, 330)]
    assert (unplaced.owner_ended, unplaced.found_gaps) == (None, [])


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
    """None is left out where it decides whether a message is lost; else the first are named, and the last for all."""
    gaps = [gap(A, at, at + 1) for at in range(0, 3000, 10)]
    found = terms(told((1, A, 500)), gaps, {A: 5000 * S})
    (unplaced, term) = found
    assert (len(unplaced.gaps), len(term.own_gaps), len(term.gaps)) == (300, 300, 200)
    assert (term.gaps[0].since, term.gaps[-2].since) == (500 * S, 2480 * S)
    assert (term.gaps[-1].since, term.gaps[-1].time) == (2490 * S, 2991 * S)


def test_makers() -> None:
    """Gaps of gateways by their origin; a queue process has none in its name, though that may be all digits."""
    gaps = [gap("gateway-7", 1, 2, service="gateway"), gap("gateway-x", 1, 2, service="gateway"), gap("queue-7", 1, 2)]
    assert [(origin, len(its)) for origin, its in makers(gaps).items()] == [(7, 1)]


def test_left_alone() -> None:
    """An owner that was missed, and had no successor, has ended; not if it was heard of again."""
    term = first(terms(told((1, A, 0)), [gap(A, 95, 130)], HEARD))
    assert (term.owner_ended, named(term.gaps)) == (130 * S, [(A, 95, 130)])
    term = first(terms(told((1, B, 0)), [gap(B, 95, 130)], HEARD))
    assert term.owner_ended is None


def test_troubled() -> None:
    """Partitions with one owner that told everything need no second look."""
    found = terms([*told((1, A, 0), (2, B, 100)), Told(2, 1, C, 0), Told(3, 1, A, 0)], [gap(A, 95, 130)], HEARD)
    assert troubled(found) == [1, 3]
