"""When memory that nothing needs is given back."""

from __future__ import annotations

from services.common.slack import Slack

MIB = 1 << 20
OWN = 80 * MIB
IDLE, BUSY = 0.02, 0.9


def looks(slack: Slack, spare: int, share: float, most: int = 1000) -> int:
    """How many looks it takes until memory is given back; `most` when it never is."""
    return next((count for count in range(1, most) if slack.look(spare, share)), most)


def begun() -> Slack:
    """Of a process that has all that it needs for itself."""
    slack = Slack()
    slack.look(OWN, IDLE)
    return slack


def test_what_a_process_needs_for_itself_is_not_spare() -> None:
    """Its own size does not count, nor a little more than that."""
    assert looks(begun(), OWN + 50 * MIB, IDLE) == 1000


def test_calm_gives_back_at_once() -> None:
    """At the second look, so that a moment between two batches is none."""
    assert looks(begun(), OWN + 400 * MIB, IDLE) == 2


def test_busy_waits_for_a_minute() -> None:
    """It may need the memory again."""
    assert looks(begun(), OWN + 400 * MIB, BUSY) == 12


def test_what_does_not_go_is_its_own_from_then_on() -> None:
    """It is not tried again and again."""
    slack = begun()
    assert looks(slack, OWN + 400 * MIB, IDLE) == 2
    slack.given_back(OWN + 100 * MIB)
    assert looks(slack, OWN + 150 * MIB, IDLE) == 1000
    assert looks(slack, OWN + 170 * MIB, IDLE) == 2


def test_who_needs_it_again_each_time_is_left_alone() -> None:
    """Twice as long each time, at most half an hour of looks."""
    slack = begun()
    waited = []
    for _ in range(7):
        waited.append(looks(slack, OWN + 400 * MIB, BUSY))
        slack.given_back(OWN)
    assert waited == [12, 24, 48, 96, 192, 360, 360]


def test_quiet_times_make_it_patient_no_longer() -> None:
    """After a while without anything spare it is as at the start."""
    slack = begun()
    looks(slack, OWN + 400 * MIB, BUSY)
    slack.given_back(OWN)
    for _ in range(20):
        assert not slack.look(OWN, IDLE)
    assert looks(slack, OWN + 400 * MIB, BUSY) == 12


def test_a_moment_is_not_counted() -> None:
    """What is needed again between two looks was not spare."""
    slack = begun()
    for _ in range(20):
        assert not slack.look(OWN + 400 * MIB, IDLE)
        assert not slack.look(OWN, IDLE)
