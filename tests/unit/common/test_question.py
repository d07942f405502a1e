from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from pathlib import Path

import pytest

from services.common.question import CONCLUDED, FATES, Sought, has_fate, moment_us

NOW = int(datetime(2026, 8, 21, 12, 30, tzinfo=UTC).timestamp()) * 1_000_000
MINUTE = 60_000_000


@pytest.mark.parametrize(
    ("text", "minutes"),
    [
        ("90s", -1.5),
        ("15m", -15),
        ("2h", -120),
        ("1d", -1440),
        ("2026-08-21T12:00", -30),
        ("2026-08-21 12:00:30", -29.5),
        ("2026-08-21T12:00+02:00", -150),
    ],
)
def test_times(text: str, minutes: float) -> None:
    """A time is so long ago, or a date and time, in the caller's zone where it names none."""
    assert moment_us(text, NOW, UTC) == NOW + minutes * MINUTE


@pytest.mark.parametrize("text", ["", "soon", "-1h", "1w", "1.5h", "25:00", "99999999999h", "2026-13-01"])
def test_no_time(text: str) -> None:
    """What is no time is refused, with what would be one."""
    with pytest.raises(ValueError, match="15m"):
        moment_us(text, NOW, UTC)


@pytest.mark.parametrize("text", ["0001-01-01", "1969-12-31", "999999d", "9999-12-31T23:59", "9999-12-31T23:59-12:00"])
@pytest.mark.parametrize("zone", [UTC, timezone(timedelta(hours=14)), timezone(timedelta(hours=-12))])
def test_times_far_away(text: str, zone: tzinfo) -> None:
    """Are as good as the first or the last that there is: a look-up can be asked for them, and told of them."""
    assert "=" in str(Sought(queue="q", since_us=moment_us(text, NOW, zone)))


def test_the_first_day_of_all() -> None:
    """A time that this machine's clock does not have, in its zone, is refused and no internal error."""
    with pytest.raises(ValueError, match="15m"):
        moment_us("0001-01-01", NOW)


@pytest.mark.parametrize("fate", CONCLUDED)
def test_what_is_not_on_record(fate: str) -> None:
    """Is told under that name, and not sought by it: the answer says what lists such messages."""
    assert "hopline analyse audit" in Sought(fate=fate).fault()


def test_fault() -> None:
    """Nothing to go by is no question, nor is a fate that there is not; the text says what was asked."""
    assert "what the messages have in common" in Sought("v").fault()
    assert "dead_lettered" in Sought(fate="eaten").fault()
    assert all(not Sought(fate=fate).fault() for fate in FATES)
    assert "since has to be before until" in Sought(queue="q", since_us=NOW, until_us=NOW).fault()
    assert not Sought(queue="q", since_us=NOW, until_us=NOW + 1).fault()
    said = str(Sought(queue="q", since_us=NOW))
    assert said.startswith("queue=q since=2026-08-2")


def test_which_row_tells_a_fate() -> None:
    """What was moved has the stage of a dead letter, and is none."""
    rows = (("dead_lettered", "", "moved"), ("dead_lettered", "", "expired"), ("settled", "accepted", ""))
    found = {fate: [row for row in rows if has_fate(fate, *row)] for fate in FATES}
    assert {fate: its for fate, its in found.items() if its} == {
        "moved": [rows[0]],
        "dead_lettered": [rows[1]],
        "accepted": [rows[2]],
        "settled": [rows[2]],
    }


def test_fates_of_the_audit() -> None:
    """What the audit says of messages that have ended can be asked for in its words."""
    # Read, not imported: it wants Spark.
    rules = (Path(__file__).parents[3] / "spark/jobs/audit_rules.py").read_text().partition("def _fate_of_copy")[2]
    words = re.findall(r'when\(_some\("\w+"\).*, "?(\w+)"?\)', rules.partition("on_disk")[0])
    assert {"settled", "rejected", "MOVED"} < set(words)
    assert not any(Sought(fate=word.lower()).fault() for word in words)
