"""From which level on processes log, as operators say while they run: records of one kind, which each process
follows (`clients/log_rules.py`). Pure.

A line is written where any rule takes it, as in Broker-J. Two rules are there always, and are as the settings say where
no record of their name says otherwise.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

RECORD_KIND: Final = "log_rule"
OWN, LIBRARIES = "hopline", "libraries"
ROOT, ALL = "ROOT", "services.*"
LOGGERS: Final = (ROOT, ALL, *(f"services.{name}.*" for name in ("gateway", "router", "queue", "store", "mgmt")))
LEVELS: Final[Mapping[str, str]] = {"DEBUG": "debug", "INFO": "info", "WARN": "warning", "ERROR": "error"}
"""Broker-J's names, and ours."""
_ORDER: Final = list(LEVELS)


class LogRule(BaseModel):
    """One rule; the record's key is its name, its value `to_json()`."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    logger: str
    level: Literal["DEBUG", "INFO", "WARN", "ERROR"]

    def to_json(self) -> bytes:
        """The record's value."""
        return self.model_dump_json().encode()


def of_settings(level: str) -> dict[str, LogRule]:
    """Those that are there always. Of what is not Hopline's own there are warnings at least, and no more."""
    own = next(theirs for theirs, ours in LEVELS.items() if ours == level)
    others = max(own, "WARN", key=_ORDER.index)
    return {OWN: LogRule(logger=ALL, level=own), LIBRARIES: LogRule(logger=ROOT, level=others)}


def readable(value: bytes) -> LogRule | None:
    """The rule of a record; None where it is none."""
    with contextlib.suppress(ValidationError):
        return LogRule.model_validate_json(value)
    return None


def level_of(loggers: Iterable[str], rules: Iterable[LogRule]) -> str:
    """From which level on some rule takes lines of a logger, which goes by these names."""
    names = set(loggers)
    return LEVELS[min((rule.level for rule in rules if rule.logger in names), key=_ORDER.index, default="ERROR")]
