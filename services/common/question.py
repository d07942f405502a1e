"""What a look-up asks for: an id, or properties that messages share."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from datetime import UTC, datetime, tzinfo

LONGEST_ID = 1024  # characters
LONGEST_PATTERN = 255  # characters: the longest that the names themselves may be
MOST_JOURNEYS = 100

FATES = {
    "accepted": ("settled", "accepted"),
    "settled": ("settled", "accepted"),  # as the audit calls it, which tells what was rejected apart
    "rejected": ("settled", "rejected"),
    "expired": ("expired", ""),
    "dead_lettered": ("dead_lettered", ""),
    "moved": ("dead_lettered", ""),  # with that reason
    "dropped": ("dropped", ""),
    "returned": ("returned", ""),
    "refused": ("refused", ""),
    "rolled_back": ("rolled_back", ""),
}
"""The fates of a message that rows of the ledger tell: the stage that each has, and its outcome where that matters."""

CONCLUDED = ("waiting", "unsettled", "in_flight", "unknown", "lost", "lost (persisted)", "lost (transient)")
"""Fates that follow from what is not on record (docs/audit.md): no row tells them, so no look-up can find them."""

WHERE_CONCLUDED = "`hopline analyse audit` lists what is waiting, unsettled, in_flight, unknown or lost"


def has_fate(fate: str, stage: str, outcome: str, reason: str) -> bool:
    """Whether a row of the ledger tells that fate."""
    return (stage, outcome) == FATES[fate] and (stage != "dead_lettered" or (reason == "moved") == (fate == "moved"))


OUTSIDE_QUEUES = {"returned", "refused", "rolled_back"}
"""Fates that a message has outside any queue."""

_AGO = re.compile(r"(\d{1,6})(s|m|h|d)")
_LAST_US = int(datetime(9999, 12, 1, tzinfo=UTC).timestamp()) * 1_000_000
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


@dataclass(frozen=True, slots=True)
class Sought:
    """Messages to which all of it applies, in patterns with * and ?; "" and 0 for what does not matter.

    Times are microseconds since the Unix epoch: of the fate, if there is one, else of the delivery, if there is a
    consumer, else of the publish.
    """

    virtual_host: str = "/"
    queue: str = ""
    client: str = ""  # the publisher: its client name, its user, or its connection
    consumer: str = ""  # the consumer: its tag, or as for a client
    key: str = ""
    fate: str = ""
    since_us: int = 0
    until_us: int = 0

    def __bool__(self) -> bool:
        return any(self._said().values())

    def __str__(self) -> str:
        return " ".join(f"{name.removesuffix('_us')}={_shown(value)}" for name, value in self._said().items())

    def fault(self) -> str:
        """What is wrong with the question, in words; "" where nothing is."""
        if self.fate in CONCLUDED:
            return f"'{self.fate}' is concluded from what is not on record: no look-up finds it. {WHERE_CONCLUDED}"
        if self.fate and self.fate not in FATES:
            return f"no fate is called '{self.fate}'; there are {', '.join(FATES)}"
        if too_long := [name for name, value in self._said().items() if len(str(value)) > LONGEST_PATTERN]:
            return f"{too_long[0]} has {LONGEST_PATTERN} characters at most"
        if self.since_us and self.until_us and self.since_us >= self.until_us:
            return "no time is between the two: since has to be before until"
        return "" if self else "an id is wanted, or what the messages have in common"

    def _said(self) -> dict[str, object]:
        each = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "virtual_host"}
        return {name: value for name, value in each.items() if value}


def _shown(value: object) -> str:
    return str(datetime.fromtimestamp(value / 1_000_000).astimezone()) if isinstance(value, int) else str(value)


def moment_us(text: str, now_us: int, zone: tzinfo | None = None) -> int:
    """From `90s`, `15m`, `2h`, `1d` before `now_us`, or a date and time of ISO 8601; raises ValueError.

    `zone` is that of a time that names none; without it, this machine's.
    """
    if ago := _AGO.fullmatch(text):
        return _within(now_us - int(ago[1]) * _SECONDS[ago[2]] * 1_000_000)
    try:
        then = datetime.fromisoformat(text)
        seconds = (then if then.tzinfo or zone is None else then.replace(tzinfo=zone)).timestamp()
    except (ValueError, OverflowError):
        raise ValueError(f"'{text}' is no time: 90s, 15m, 2h, 1d ago, or 2026-11-23T08:00") from None
    return _within(int(seconds * 1_000_000))


def _within(moment: int) -> int:
    """The moment, moved to between the Unix epoch, before which nothing is filed, and the last date of all zones."""
    return min(max(moment, 1), _LAST_US)
