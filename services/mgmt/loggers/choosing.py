"""Which lines a logger takes: what any of its rules takes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from services.common.log_rules import NUMBERS
from services.mgmt.loggers.records import BY_NAME, LoggerRecord, RuleRecord
from services.mgmt.model.faults import IllegalConfiguration
from services.rpc.logs_pb2 import Line

if TYPE_CHECKING:
    import regex

_LONGEST: Final = 0.02
"""Seconds for one line: an expression that takes longer is a mistake, and takes nothing from then on."""


def compiled(attribute: str, pattern: str) -> regex.Pattern[str]:
    """Raises IllegalConfiguration."""
    import regex  # noqa: PLC0415 - a stack without such rules does without its memory

    try:
        return regex.compile(pattern, cache_pattern=False)
    except (regex.error, RecursionError) as error:
        raise IllegalConfiguration(f"attribute '{attribute}': {pattern!r} is no regular expression: {error}") from None


class Rule:
    """One, ready to be asked."""

    def __init__(self, said: RuleRecord) -> None:
        self._said = said
        self._least = NUMBERS[said.level]
        self._patterns = self._compiled() if said.type != BY_NAME else ()
        self._too_slow = False

    def _compiled(self) -> tuple[regex.Pattern[str], ...]:
        return (
            compiled("username", self._said.username),
            compiled("connectionName", self._said.connection),
            compiled("remoteContainerId", self._said.container),
        )

    def takes(self, line: Line) -> bool:
        """Whether that line is in it."""
        # As in Taken: Hopline's own lines are those of their process, too.
        names = (line.logger, f"services.{line.service}") if line.service else (line.logger,)
        taken = NUMBERS.get(line.level, 0) >= self._least and self._said.is_about(names)
        return taken and (self._said.type == BY_NAME or self._is_whose(line))

    def _is_whose(self, line: Line) -> bool:
        """A line that is of nobody is in none."""
        if self._too_slow or not (line.user or line.connection):
            return False
        told = (line.user, line.connection, line.container)
        try:
            return all(
                pattern.fullmatch(each, timeout=_LONGEST) for pattern, each in zip(self._patterns, told, strict=True)
            )
        except TimeoutError:
            self._too_slow = True
            return False


class Choice:
    """Of one logger."""

    def __init__(self, logger: LoggerRecord, virtual_host: str, rules: Iterable[RuleRecord]) -> None:
        """`virtual_host` is "" of one of the whole broker."""
        self._without_hosts = logger.without_hosts
        self._virtual_host = virtual_host
        self._rules = [Rule(rule) for rule in rules]

    def takes(self, line: Line) -> bool:
        """Whether it is for that logger."""
        if self._virtual_host and line.virtual_host != self._virtual_host:
            return False
        if self._without_hosts and line.virtual_host:
            return False
        return any(rule.takes(line) for rule in self._rules)
