"""Which lines a logger takes: what any of its rules takes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import structlog

from services.common.log_rules import NUMBERS
from services.mgmt.loggers.records import BY_NAME, LoggerRecord, RuleRecord
from services.mgmt.model.faults import IllegalConfiguration
from services.rpc.logs_pb2 import Line

if TYPE_CHECKING:
    import regex

_DO: Final = "change its expression, or leave the rule out"
_LONGEST: Final = 0.02
"""Seconds for one line: an expression that takes longer is a mistake, and takes nothing until its rule is changed."""
_TOO_SLOW: Final = (
    f"a regular expression of it took more than {_LONGEST * 1000:g} ms for a line: it takes none, until it is changed"
)

log = structlog.get_logger()


def compiled(attribute: str, pattern: str) -> regex.Pattern[str]:
    """Raises IllegalConfiguration."""
    import regex  # noqa: PLC0415 - a stack without such rules does without its memory

    try:
        return regex.compile(pattern, cache_pattern=False)
    except (regex.error, RecursionError) as error:
        raise IllegalConfiguration(f"attribute '{attribute}': {pattern!r} is no regular expression: {error}") from None


class Rule:
    """One, ready to be asked."""

    def __init__(self, name: str, said: RuleRecord) -> None:
        self._name = name
        self._said = said
        self._least = NUMBERS[said.level]
        self._patterns = self._compiled() if said.type != BY_NAME else ()
        self.trouble = ""
        """Why it takes nothing."""

    def says(self, said: RuleRecord) -> bool:
        """Whether it is that rule, unchanged."""
        return self._said == said

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
        if self.trouble or not (line.user or line.connection):
            return False
        told = (line.user, line.connection, line.container)
        try:
            return all(
                pattern.fullmatch(each, timeout=_LONGEST) for pattern, each in zip(self._patterns, told, strict=True)
            )
        except TimeoutError:
            self.trouble = _TOO_SLOW
            log.warning("a rule of a logger is too slow", rule=self._name, reason=self.trouble, do=_DO)
            return False


class Choice:
    """Of one logger."""

    def __init__(
        self, logger: LoggerRecord, virtual_host: str, rules: Mapping[str, RuleRecord], former: Choice | None = None
    ) -> None:
        """`virtual_host` is "" of one of the whole broker; rules that `former` has as well go on."""
        self._without_hosts = logger.without_hosts
        self._virtual_host = virtual_host
        before = former.rules if former else {}
        self.rules: Mapping[str, Rule] = {
            name: before[name] if name in before and before[name].says(said) else Rule(name, said)
            for name, said in rules.items()
        }

    def takes(self, line: Line) -> bool:
        """Whether it is for that logger."""
        if self._virtual_host and line.virtual_host != self._virtual_host:
            return False
        if self._without_hosts and line.virtual_host:
            return False
        return any(rule.takes(line) for rule in self.rules.values())

    def trouble_of(self, rule: str) -> str:
        """Why a rule takes nothing; "": it does."""
        return self.rules[rule].trouble if rule in self.rules else ""
