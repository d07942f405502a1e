"""The access records, followed: a process decides from its own copy, and asks no other service."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable

from services.common import plugins
from services.common.access.asked import Asked, Principal
from services.common.access.by_key import ByKey
from services.common.access.control import AccessControl, decide
from services.common.access.rules import KINDS, Rules
from services.common.access.verdict import Verdict
from services.common.containment import for_each
from services.common.runtime import CannotStart
from services.rpc.store_pb2 import Records

__all__ = ["KINDS", "Access"]

_DO = "set it again: hopline permissions, groups, acl"


class Access:
    """Follows the records; `listeners` are told when they have changed."""

    def __init__(self, names: Iterable[str]) -> None:
        """`names` are access controls, in the order in which they are asked. Raises CannotStart for an unknown name."""
        self.rules = Rules()
        self.listeners: list[Callable[[], None]] = []
        self.controls = tuple(map(_made, names))
        self._known = asyncio.Event()

    async def follow(self, records: AsyncIterator[Records]) -> None:
        """Applies a watch of the records of KINDS; ends with it."""
        fresh = Rules()
        async for batch in records:
            rules = fresh if batch.snapshot else self.rules
            for_each("reading what is set of access", batch.records, rules.apply, do=_DO)
            if batch.snapshot and not batch.last:
                continue
            if batch.snapshot:
                self.rules, fresh = rules, Rules()
            self._known.set()
            for_each("applying what is set of access", list(self.listeners), lambda listener: listener())

    async def known(self) -> None:
        """Returns when there is something to decide from."""
        await self._known.wait()

    def decide(self, principal: Principal, asked: Asked) -> Verdict:
        """ALLOWED or DENIED, as things are now."""
        return decide(self.controls, principal, asked, self.rules)

    def by_key(self, principal: Principal, asked: Asked) -> ByKey:
        """The same for every routing key, until the next change."""
        return ByKey(self.controls, principal, asked, self.rules)


def _made(name: str) -> AccessControl:
    if name not in plugins.names("access_control"):
        there = ", ".join(plugins.names("access_control"))
        raise CannotStart(f"HOPLINE_ACCESS_CONTROL: there is no {name}; there are {there}")
    control: AccessControl = plugins.load("access_control", name)()
    return control
