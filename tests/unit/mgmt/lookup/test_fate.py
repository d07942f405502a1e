"""What is known of a copy whose end is not on record: the same that the audit says of it."""

from __future__ import annotations

from typing import Any

import pytest

from services.common.trace import Gap, Step
from services.mgmt.lookup.blame import Follower
from services.mgmt.lookup.fate import Record, fate_of

S = 1_000_000
NOW = 1000 * S
DEAD, ALIVE, GATEWAY = "queue-0", "queue-1", "gateway-1"


def step(stage: str, at: float, **facts: Any) -> Step:
    texts = ("virtual_host", "exchange", "routing_key", "protocol", "connection", "client", "consumer", "outcome")
    in_queue = stage not in {"received", "confirmed"}
    blank: dict[str, Any] = {
        **dict.fromkeys((*texts, "reason", "target"), ""),
        "service": "queue", "instance": DEAD, "queue": "q" if in_queue else "", "partition": 1 if in_queue else None,
        "epoch": 1 if in_queue and stage not in {"routed", "sent"} else None, "attempt": 0, "count": 1, "bytes": 0,
        "successors": [], "wait_us": 0,
    }  # fmt: skip
    return Step(time_us=int(at * S), stage=stage, **{**blank, **facts})


def gap(instance: str, since: float | None, noticed: float, reason: str = "silent") -> Gap:
    since_us = None if since is None else int(since * S)
    return Gap(
        time_us=int(noticed * S), service=instance.partition("-")[0], instance=instance, first_row=1, last_row=1,
        count=-1, reason=reason, since_us=since_us,
    )  # fmt: skip


def fate(*stages: tuple[str, float], gaps: tuple[Gap, ...] = (), followed: float | None = None) -> tuple[str, str]:
    """The fate of a message that was received at 1 and its gap's instance; `followed` is when the next owner came."""
    message = [step("received", 1), *(step(*each) for each in stages)]
    copy = [each for each in message if each.queue]
    followers = [Follower(int(followed * S), 2, ALIVE)] if followed else []
    found = fate_of(copy, message, Record(gaps, lambda *_: followers, NOW))
    return found.name, found.gap.instance if found.gap else ""


ENQUEUED = ("confirmed", 10.1), ("enqueued", 10)
ON_DISK = (*ENQUEUED, ("persisted", 10.1))
TAKEN = ("delivered", 20), ("sent", 20)
DIED = gap(DEAD, 99, 135)


@pytest.mark.parametrize(
    ("stages", "gaps", "followed", "expected"),
    [
        (ENQUEUED, (), None, ("waiting", "")),
        ((*ENQUEUED, *TAKEN), (), None, ("unsettled", "")),
        ((*ENQUEUED, *TAKEN, ("requeued", 30)), (), None, ("waiting", "")),
        (ENQUEUED, (DIED,), 105, ("lost (transient)", DEAD)),
        (ENQUEUED, (gap(DEAD, None, 135),), 105, ("unknown", DEAD)),  # of an older release
        ((("confirmed", 98.5), ("enqueued", 98.5)), (DIED,), 105, ("unknown", DEAD)),
        (ON_DISK, (DIED,), 105, ("unknown", DEAD)),
        (ON_DISK, (), 105, ("lost (persisted)", "")),
        (ON_DISK, (gap(ALIVE, 104, 135, "given_up"),), 105, ("unknown", ALIVE)),  # what it found may be missing
        (ON_DISK, (gap(ALIVE, 107, 135, "given_up"),), 105, ("lost (persisted)", "")),
        (ON_DISK, (gap("queue-7", 104, 135),), 105, ("lost (persisted)", "")),
        (ENQUEUED, (gap(ALIVE, 104, 135, "given_up"),), 105, ("unknown", ALIVE)),
        (ENQUEUED, (DIED, gap(ALIVE, 104, 135, "given_up")), 105, ("unknown", DEAD)),  # perhaps it was handed over
        (ENQUEUED, (DIED, gap(ALIVE, 90, 95, "given_up")), 105, ("lost (transient)", DEAD)),  # over by then
        (ENQUEUED, (gap(DEAD, 5, 9, "given_up"), DIED), 105, ("lost (transient)", DEAD)),  # over before it came
        (ENQUEUED, (gap(DEAD, 50, 60, "given_up"), DIED), 105, ("lost (transient)", DEAD)),
        (ENQUEUED, (gap(DEAD, 11, 60, "given_up"), DIED), 105, ("unknown", DEAD)),  # is it on disk?
        (ENQUEUED, (gap(DEAD, 50, 60, "given_up"), gap(DEAD, 11, 135)), 105, ("unknown", DEAD)),
        (ENQUEUED, (gap(DEAD, 50, 60, "given_up"), gap(GATEWAY, 50, 60), DIED), 105, ("unknown", DEAD)),
        (ENQUEUED, (gap(DEAD, 5, 9, "given_up"), gap(GATEWAY, 5, 9), DIED), 105, ("lost (transient)", DEAD)),
        (ENQUEUED, (gap(DEAD, 50, 60, "given_up"), DIED), None, ("unknown", DEAD)),
        (ENQUEUED, (gap(GATEWAY, 90, 98.5), DIED), 105, ("unknown", DEAD)),  # by another clock
        (ENQUEUED, (gap(ALIVE, 90, 104.5, "given_up"),), 105, ("unknown", ALIVE)),
        (ENQUEUED, (), 105, ("lost (transient)", "")),
        (ENQUEUED, (), 990, ("in_flight", "")),
        ((*ENQUEUED, *TAKEN), (DIED,), 105, ("unknown", DEAD)),
        (ENQUEUED, (DIED, gap(GATEWAY, 98, 130)), 105, ("unknown", DEAD)),
        (ENQUEUED, (gap(GATEWAY, 10, 40), DIED), 105, ("lost (transient)", DEAD)),
        (ENQUEUED, (gap(DEAD, 300, 330),), 105, ("lost (transient)", "")),  # it had been followed long before
        (ON_DISK, (DIED,), None, ("waiting", "")),
        (ENQUEUED, (DIED,), None, ("unknown", DEAD)),
        ((*ON_DISK, *TAKEN), (DIED,), None, ("unknown", DEAD)),
        ((*ENQUEUED, *TAKEN), (gap(DEAD, 25, 30, "given_up"),), None, ("unknown", DEAD)),
        (ENQUEUED, (gap(DEAD, 25, 30, "given_up"),), None, ("waiting", "")),
        (ENQUEUED, (gap(ALIVE, 99, 135),), None, ("waiting", "")),
        ((("routed", 2), ("confirmed", 3)), (), None, ("lost", "")),
        ((("routed", 2),), (), None, ("", "")),
        ((("routed", 2), ("confirmed", 3)), (gap(DEAD, 2.5, 40),), None, ("unknown", DEAD)),
        ((("routed", 2), ("confirmed", 3)), (DIED,), None, ("lost", "")),  # what came later is not what is missing
        ((("routed", 2),), (gap(DEAD, 30, 61),), None, ("unknown", DEAD)),  # it may have waited for its owner
        ((("routed", 2),), (DIED,), None, ("", "")),
        ((("routed", 2),), (gap(GATEWAY, 3, 34),), None, ("", "")),  # a gateway has no queue
        ((("routed", 999),), (gap(GATEWAY, 999, 1000),), None, ("in_flight", "")),
    ],
)
def test_fates(
    stages: tuple[tuple[str, float], ...], gaps: tuple[Gap, ...], followed: float | None, expected: tuple[str, str]
) -> None:
    """A loss is named by what was promised, a message that no consumer took waits, and unknown names the gap."""
    assert fate(*stages, gaps=gaps, followed=followed) == expected


@pytest.mark.parametrize(
    ("stages", "followed", "expected"), [(ENQUEUED, 105, "lost (transient)"), (ON_DISK, None, "waiting")]
)
def test_what_ends_alone(stages: tuple[tuple[str, float], ...], followed: float | None, expected: str) -> None:
    """Where messages of the queue expire or are dropped, the fate of one that died with its owner is unknown."""
    message = [step("received", 1), *(step(*each) for each in stages)]
    followers = [Follower(int(followed * S), 2, ALIVE)] if followed else []
    until = int((followed or 135) * S)
    for alone, fate in ((False, expected), (True, "unknown")):
        asked: list[tuple[str, str, int, int]] = []

        def ends_alone(*about: Any, alone: bool = alone, asked: list[tuple[str, str, int, int]] = asked) -> bool:
            asked.append(about)
            return alone

        record = Record((DIED,), lambda *_: followers, NOW, ends_alone)
        assert fate_of([each for each in message if each.queue], message, record).name == fate
        assert asked == [("", "q", 10 * S, until)]


@pytest.mark.parametrize(
    ("gaps", "expected"),
    [
        ((), "lost (persisted)"),
        ((gap("queue-7", 300, 335),), "unknown"),
        ((gap(GATEWAY, 99, 135),), "lost (persisted)"),
    ],
)
def test_an_owner_of_whom_nothing_is_on_record(gaps: tuple[Gap, ...], expected: str) -> None:
    """A message may have ended with it, where a queue process is missed at all."""
    message = [step("received", 1), *(step(*each) for each in ON_DISK)]
    followers = [Follower(105 * S, 3, ALIVE)]  # nobody tells of epoch 2
    assert fate_of(message[1:], message, Record(gaps, lambda *_: followers, NOW)).name == expected


@pytest.mark.parametrize(
    ("gaps", "takes_over", "expected"),
    [
        ((gap(ALIVE, 104, 120, "given_up"),), True, ("unknown", ALIVE)),
        ((gap(ALIVE, 104, 120, "given_up"),), False, ("unknown", ALIVE)),
        ((gap(GATEWAY, 104, 120),), True, ("unknown", "")),
        ((), False, ("lost (persisted)", "")),
    ],
    ids=["it may be missing", "it may be missing, of an older release", "nothing is missing", "of an older release"],
)
def test_an_owner_whose_takeover_is_not_on_record(
    gaps: tuple[Gap, ...], expected: tuple[str, str], *, takes_over: bool
) -> None:
    """Who told of the partition under a later epoch has it; what it found is not known, where others say so."""
    message = [step("received", 1), *(step(*each) for each in ON_DISK)]
    record = Record(
        gaps, lambda *_: [], NOW, tellers=lambda *_: [Follower(200 * S, 2, ALIVE)], takes_over=lambda: takes_over
    )
    found = fate_of(message[1:], message, record)
    assert (found.name, found.gap.instance if found.gap else "") == expected


@pytest.mark.parametrize(
    ("gaps", "followed", "expected"),
    [
        ((gap(ALIVE, 104, 120, "given_up"),), False, "unknown"),
        ((gap(GATEWAY, 104, 120),), False, "waiting"),
        ((gap(ALIVE, 5, 9, "given_up"),), False, "waiting"),
        ((), True, "unknown"),
    ],
    ids=["perhaps in a gap", "nothing is missing", "over before it came", "perhaps by yet another"],
)
def test_it_takes_too_long_to_see_who_told(gaps: tuple[Gap, ...], expected: str, *, followed: bool) -> None:
    """Then a copy waits only if no takeover can be missing, and none is lost."""
    message = [step("received", 1), *(step(*each) for each in ON_DISK)]
    followers = [Follower(200 * S, 2, ALIVE)] if followed else []
    record = Record(gaps, lambda *_: followers, NOW, tellers=lambda *_: None)
    assert fate_of(message[1:], message, record).name == expected


def test_the_newest_owner_came_just_now() -> None:
    """Who had it between may have died, which is not on record yet: a message is lost only when that would be."""
    message = [step("received", 1), *(step(*each) for each in ENQUEUED)]
    for at, expected in ((900, "lost (transient)"), (990, "in_flight")):
        followers = [Follower(105 * S, 2, ALIVE), Follower(at * S, 3, "queue-2")]
        assert fate_of(message[2:], message, Record((), lambda *_, its=followers: its, NOW)).name == expected


@pytest.mark.parametrize(("sent_on", "expected"), [(10.1, "lost (transient)"), (98.5, "unknown")])
def test_a_dead_letter_is_safe_when_who_sent_it_on_says_so(sent_on: float, expected: str) -> None:
    """By then it is on disk, if it is to be: as what is received is when it is confirmed."""
    letter = [step("routed", 9), step("enqueued", 10)]
    record = Record((DIED,), lambda *_: [Follower(105 * S, 2, ALIVE)], NOW)
    assert fate_of(letter, letter, record, int(sent_on * S)).name == expected


@pytest.mark.parametrize(("begin", "expected"), [(10, "unknown"), (400, "unknown"), (None, "")])
def test_what_a_consumer_had_of_which_no_owner_told(begin: float | None, expected: str) -> None:
    """Any gap of an owner may be to blame, at any time."""
    sent = [step("sent", 300)]
    gaps = () if begin is None else (gap(DEAD, begin, begin + 30),)
    record = Record(gaps, lambda *_: [], NOW, owners=lambda *_: [Follower(0, 1, DEAD)])
    assert fate_of(sent, sent, record).name == expected


def test_a_late_word_of_a_former_owner() -> None:
    """What it says that it let go, or gave to a consumer, says nothing of what the next one has."""
    late = step("dropped", 300, reason="no_owner")
    message = [step("received", 1), *(step(*each) for each in ENQUEUED), step("delivered", 21)]
    again = [step("enqueued", 20, epoch=2, instance=ALIVE), step("requeued", 19, epoch=2, instance=ALIVE)]
    copy = [*message[2:], *again, late]
    record = Record((gap(ALIVE, 90, 130),), lambda *_: [], NOW)
    assert fate_of(copy, [*message, *again, late], record).name == "unknown"
    assert fate_of(copy, [*message, *again, late], Record((), lambda *_: [], NOW)).name == "waiting"


@pytest.mark.parametrize(
    ("owners", "gaps", "expected"),
    [
        ([(0, 1, DEAD)], (gap(DEAD, 1.5, 40),), ("unknown", DEAD)),
        ([(0, 1, DEAD)], (gap(ALIVE, 1.5, 40),), ("lost", "")),
        # Killed long before, and missed since: by then another had the partition.
        ([(-90, 1, DEAD), (-60, 2, ALIVE)], (gap(DEAD, -62, 10),), ("lost", "")),
        ([(-90, 1, DEAD), (-60, 2, ALIVE)], (gap(DEAD, -62, 10), gap(ALIVE, 2, 33)), ("unknown", ALIVE)),
        ([(-90, 1, DEAD), (-60, 3, ALIVE)], (gap("queue-7", -62, 10),), ("lost", "")),
        ([(-90, 1, DEAD), (60, 3, ALIVE)], (gap("queue-7", 2, 33),), ("unknown", "queue-7")),  # nobody tells of epoch 2
        ([(60, 3, ALIVE)], (gap("queue-7", 2, 33),), ("unknown", "queue-7")),
    ],
)
def test_whose_gap_is_to_blame(
    owners: list[tuple[int, int, str]], gaps: tuple[Gap, ...], expected: tuple[str, str]
) -> None:
    """Of what no owner told of: that of the owner of then, for as much of it as was its term."""
    message = [step(*each) for each in (("received", 1), ("routed", 2), ("confirmed", 3))]
    known = [Follower(at * S, epoch, instance) for at, epoch, instance in owners]
    record = Record(gaps, lambda *_: [], NOW, owners=lambda *_: known)
    found = fate_of(message[1:2], message, record)
    assert (found.name, found.gap.instance if found.gap else "") == expected


@pytest.mark.parametrize(
    ("left", "since", "expected"),
    [(None, 1.5, "lost"), (0.5, 1.5, "unknown"), (60, 61.5, "lost"), (60, 1.5, "lost")],
    ids=["not", "before it was published", "later", "later, missed before"],
)
def test_who_follows_the_last_owner(left: float | None, since: float, expected: str) -> None:
    """Since it left, another may have had the partition whose rows could not get out."""
    message = [step(*each) for each in (("received", 1), ("routed", 2), ("confirmed", 3))]
    known = [Follower(-90 * S, 1, DEAD, None if left is None else int(left * S))]
    record = Record((gap(ALIVE, since, 95),), lambda *_: [], NOW, owners=lambda *_: known)
    assert fate_of(message[1:2], message, record).name == expected


@pytest.mark.parametrize(
    ("gaps", "owners", "expected"),
    [
        ((), [(0, 1, DEAD)], ("lost", "")),
        ((gap(DEAD, 300, 331),), [(0, 1, DEAD)], ("unknown", DEAD)),  # for so long it waits, and longer
        ((gap(ALIVE, 300, 331),), [(0, 1, DEAD), (290, 2, ALIVE)], ("unknown", ALIVE)),
        ((gap(ALIVE, 400, 431),), [(0, 1, DEAD), (290, 2, ALIVE)], ("lost", "")),  # by then that one had it
        ((gap(DEAD, 1.5, 40), gap(ALIVE, 400, 431)), [(0, 1, DEAD), (5, 2, ALIVE)], ("unknown", DEAD)),
    ],
)
def test_a_dead_letter_waits_for_an_owner(
    gaps: tuple[Gap, ...], owners: list[tuple[int, int, str]], expected: tuple[str, str]
) -> None:
    """What an owner sent on is lost if no queue has it, unless who had that partition until the next takeover may."""
    letter = [step("routed", 2)]
    known = [Follower(at * S, epoch, instance) for at, epoch, instance in owners]
    found = fate_of(letter, letter, Record(gaps, lambda *_: [], NOW, owners=lambda *_: known), 2 * S)
    assert (found.name, found.gap.instance if found.gap else "") == expected


@pytest.mark.parametrize("gaps", [(), (gap(GATEWAY, 1, 40),), (gap(DEAD, 99, 135),), (gap(DEAD, -90, 0.5),)])
def test_nobody_is_asked_who_owned_it(gaps: tuple[Gap, ...]) -> None:
    """Where no gap of a queue process is of then, that takes nothing to say."""
    message = [step(*each) for each in (("received", 1), ("routed", 2), ("confirmed", 3))]

    def owners(*about: int) -> list[Follower]:
        raise AssertionError(about)

    assert fate_of(message[1:2], message, Record(gaps, lambda *_: [], NOW, owners=owners)).name == "lost"
