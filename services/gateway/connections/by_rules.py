"""Applies Broker-J's connection limit rules: each gateway counts its own connections."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final

import structlog

from services.common.clock import Clock, monotonic
from services.common.containment import for_each
from services.common.errors import NotAllowed
from services.common.few_lines import FewLines
from services.common.limit_rules import Bound, LimitRules, parse
from services.rpc.store_pb2 import Record, Records

if TYPE_CHECKING:
    from collections.abc import Iterable

    from services.gateway.connections.connection import Connection
    from services.gateway.connections.former import Former

log = structlog.get_logger()

_SECONDS: Final = 60.0  # for one line of the log
_DO: Final = "see the rules (connectionlimitprovider below /api/latest), and who connects: hopline connections"
_FEW: Final = 1000  # users whose times are kept, though none of them may count any more
_CountKey = tuple[str | None, str, str]
"""What is counted by: the scope of the rules, the broker's (None) or a virtual host's; a port, and a user."""


@dataclass(slots=True)
class _Times:
    """When a user has connected; none of it counts after `until`."""

    at: list[float] = field(default_factory=list)
    until: float = 0.0


class ByRules:
    """The counts of one gateway. Rules apply to new connections; open ones stay when rules change."""

    def __init__(self, former: Former, clock: Clock = monotonic) -> None:
        self._former = former
        self._clock = clock
        self._rules: dict[str | None, LimitRules] = {}
        self._counts: Counter[_CountKey] = Counter()
        self._times: dict[_CountKey, _Times] = {}
        self._most_times = _FEW
        self._keys: dict[Connection, tuple[_CountKey, ...]] = {}
        self._few = FewLines(1, _SECONDS)

    async def follow(self, records: AsyncIterator[Records]) -> None:
        """Applies a watch of records of RECORD_KIND; ends with it."""
        fresh: dict[str | None, LimitRules] = {}
        async for batch in records:
            into = fresh if batch.snapshot else self._rules
            for_each("reading connection limits", batch.records, partial(_apply, into), do=_DO)
            if batch.snapshot and batch.last:
                self._rules, fresh = fresh, {}

    def enter(self, connection: Connection, virtual_host: str, groups: Iterable[str]) -> None:
        """Admits a client to a virtual host; raises NotAllowed when its user is blocked or has enough connections."""
        user, port, groups = connection.user, connection.login.port, frozenset(groups)
        bounds = {
            (scope, port, user): self._rules[scope].of(user, groups, port)
            for scope in self._scopes(virtual_host)
            if scope in self._rules
        }
        for key, bound in bounds.items():
            self._check(key, bound)
        self._keys[connection] = keys = ((None, port, user), (virtual_host, port, user))
        self._counts.update(keys)
        for key, bound in bounds.items():
            if bound.frequencies:
                self._note(key, max(bound.frequencies))

    def leave(self, connection: Connection) -> None:
        """The connection is gone."""
        for key in self._keys.pop(connection, ()):
            self._counts[key] -= 1
            if not self._counts[key]:
                del self._counts[key]

    def reset(self, scope: str | None) -> None:
        """How often users have connected does not count any more; connections that are open do."""
        self._times = {key: times for key, times in self._times.items() if key[0] != scope}

    def _scopes(self, virtual_host: str) -> tuple[str | None, ...]:
        return (None,) if self._former.has_limits(virtual_host) else (None, virtual_host)

    def _check(self, key: _CountKey, bound: Bound) -> None:
        _, port, user = key
        if bound.blocked:
            self._refuse(f"user '{user}' is blocked at port '{port}'")
        if bound.count is not None and self._counts[key] >= bound.count:
            self._refuse(f"user '{user}' has {bound.count} connections at port '{port}', which is the limit")
        self._check_frequencies(key, bound)

    def _check_frequencies(self, key: _CountKey, bound: Bound) -> None:
        if not bound.frequencies:
            self._times.pop(key, None)
            return
        now, times = self._clock(), self._times[key].at if key in self._times else []
        del times[: bisect_right(times, now - max(bound.frequencies))]
        for period, limit in bound.frequencies.items():
            if len(times) - bisect_right(times, now - period) >= limit:
                often = f"{limit} times in {period:g} s"
                self._refuse(f"user '{key[2]}' has connected {often} to port '{key[1]}', which is the limit")

    def _note(self, key: _CountKey, period: float) -> None:
        """Now it has connected. Those that came once, and do not come again, are forgotten when they are many."""
        now = self._clock()
        times = self._times.setdefault(key, _Times())
        times.at.append(now)
        times.until = now + period
        if len(self._times) > self._most_times:
            self._times = {each: kept for each, kept in self._times.items() if kept.until > now}
            self._most_times = max(_FEW, 2 * len(self._times))

    def _refuse(self, why: str) -> None:
        self._few.say(log.warning, "a connection is refused by a limit", reason=why, do=_DO)
        raise NotAllowed(f"connection refused: {why}")


def _apply(into: dict[str | None, LimitRules], record: Record) -> None:
    scope = json.loads(record.key)
    into.pop(scope, None)
    if not record.deleted:
        into[scope] = parse(json.loads(record.value)["text"])
