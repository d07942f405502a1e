"""From which level on lines are taken, as operators say while processes run: records, which each process follows
(`clients/log_rules.py`). Pure.

A line is written where any rule takes it, as in Broker-J. Two rules are there always, and are as the settings say where
no record of their name says otherwise. Those are of the processes' standard error; other loggers have rules of their
own, of another kind of records, and lines for them are sent to who manages (`log_lines.py`).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from typing import Final, Literal, get_args

from pydantic import BaseModel, ConfigDict, ValidationError

RECORD_KIND: Final = "log_rule"
BEYOND_KIND: Final = "logger_rule"
"""Rules of loggers other than that of standard error."""
KINDS: Final = (RECORD_KIND, BEYOND_KIND)
OWN, LIBRARIES = "hopline", "libraries"
ROOT, ALL = "ROOT", "services.*"
Level = Literal["ALL", "TRACE", "DEBUG", "INFO", "WARN", "ERROR", "OFF"]
LEVELS: Final = get_args(Level)
"""Broker-J's names."""
NUMBERS: Final[Mapping[str, int]] = {"ALL": 0, "TRACE": 5, "DEBUG": 10, "INFO": 20, "WARN": 30, "ERROR": 40, "OFF": 99}
_OURS: Final[Mapping[str, Level]] = {"debug": "DEBUG", "info": "INFO", "warning": "WARN", "error": "ERROR"}
_SERVICES: Final = "services."
_OTHERS: Final = tuple(f"{_SERVICES}{name}" for name in ("gateway", "router", "queue", "store", "mgmt"))
_MOST: Final = 10_000  # loggers of which it is remembered


class LogRule(BaseModel):
    """One rule; the record's key is its name, its value `to_json()`."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    logger: str
    level: Level

    def to_json(self) -> bytes:
        """The record's value."""
        return self.model_dump_json().encode()

    def is_about(self, names: Iterable[str]) -> bool:
        """Whether it takes lines of one of these, from its level on: all, those of one, all below one."""
        below = self.logger.removesuffix(".*")
        if self.logger in {ROOT, ""}:
            return True
        if below == self.logger:
            return self.logger in names
        return any(name == below or name.startswith(below + ".") for name in names)


def of_settings(level: str) -> dict[str, LogRule]:
    """Those that are there always. Of what is not Hopline's own there are warnings at least, and no more."""
    own = _OURS[level]
    others = max(own, "WARN", key=NUMBERS.__getitem__)
    return {OWN: LogRule(logger=ALL, level=own), LIBRARIES: LogRule(logger=ROOT, level=others)}


def readable(value: bytes) -> LogRule | None:
    """The rule of a record; None where it is none."""
    with contextlib.suppress(ValidationError):
        return LogRule.model_validate_json(value)
    return None


class Taken:
    """What some rules take of what one process logs."""

    def __init__(self, rules: Iterable[LogRule], service: str) -> None:
        """`service` is what the process is: gateway, queue."""
        self._process = f"{_SERVICES}{service}"
        self._rules = [rule for rule in rules if not self._is_of_another(rule)]
        self.own = self._least(self._rules)
        """Below that level no line of Hopline's own is taken; that is known before a line's logger is."""
        self.others = max(
            self._least(rule for rule in self._rules if not rule.logger.startswith(_SERVICES)), NUMBERS["INFO"]
        )
        """The same of lines of libraries. At DEBUG they tell headers, statements and values, with secrets in them."""
        self._known: dict[tuple[str, bool], int] = {}

    def _is_of_another(self, rule: LogRule) -> bool:
        service = ".".join(rule.logger.removesuffix(".*").split(".")[:2])
        return service in _OTHERS and service != self._process

    @staticmethod
    def _least(rules: Iterable[LogRule]) -> int:
        return min((NUMBERS[rule.level] for rule in rules), default=NUMBERS["OFF"])

    def takes(self, number: int, logger: str, *, own: bool) -> bool:
        """Whether a line of that level is taken; all of Hopline's own are the process's as well as their module's."""
        key = logger, own
        if (least := self._known.get(key)) is None:
            if len(self._known) >= _MOST:
                self._known.clear()
            names = (logger, self._process) if own else (logger,)
            least = self._least(rule for rule in self._rules if rule.is_about(names))
            self._known[key] = least = least if own else max(least, NUMBERS["INFO"])
        return number >= least
