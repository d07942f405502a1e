"""BrokerConnectionLimitProvider and VirtualHostConnectionLimitProvider: rules are on record (`../access/grants.py`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from services.common.access.acl.tokens import lines
from services.common.limit_rules import RECORD_KIND, key_of, parse
from services.mgmt.access.operations import CONFIGURE
from services.mgmt.model.configured_object import ConfiguredObject
from services.mgmt.model.connection_limit import BrokerConnectionLimitProvider, VirtualHostConnectionLimitProvider
from services.mgmt.model.faults import IllegalConfiguration
from services.mgmt.tree.category import Keeper, Own
from services.mgmt.tree.rule_files import rules_at

NAME: Final = "limits"
"""What rules are called: there is one set of them."""


class _Rules(Keeper):
    """Of the broker, or of a virtual host."""

    sees = CONFIGURE
    depends = ("virtual_host", RECORD_KIND)
    changes = True

    def described(self, parent: ConfiguredObject | None) -> Iterator[Own]:
        if rules := self._text(_host_of(parent)):
            yield {"name": NAME, "rules": rules}, ""

    async def create(self, parent: ConfiguredObject | None, name: str, wanted: Mapping[str, Any]) -> None:
        if name != NAME:
            raise IllegalConfiguration(f"attribute 'name': connection limits are called '{NAME}'")
        await self._put(_host_of(parent), wanted["rules"])

    async def update(self, found: ConfiguredObject, wanted: Mapping[str, Any]) -> None:
        if "rules" in wanted:
            await self._put(_host_of(found.parent), wanted["rules"])

    async def delete(self, found: ConfiguredObject) -> None:
        await self._put(_host_of(found.parent), "")

    async def invoke(self, found: ConfiguredObject, operation: str, arguments: Mapping[str, Any]) -> str | None:
        if operation == "extractRules":
            return str(found.actual["rules"])
        virtual_host = _host_of(found.parent)
        if operation == "resetCounters":
            await self.house.gateways.reset_limits(virtual_host)
            return None
        more = await rules_at(arguments["path"], _check_more)
        text = await self.house.grants.add_limit_rules(virtual_host, more)
        # Others may have come since.
        await self.house.arrived(RECORD_KIND, lambda: self._text(virtual_host).startswith(text))
        return None

    def _text(self, virtual_host: str | None) -> str:
        kept = self.house.mirror.tables[RECORD_KIND].get(key_of(virtual_host))
        return str(kept.value["text"]) if kept else ""

    async def _put(self, virtual_host: str | None, text: str) -> None:
        """No rules at all are none on record."""
        await self.house.grants.put_limit_rules(virtual_host, text)
        await self.house.arrived(RECORD_KIND, lambda: self._text(virtual_host) == text)


class BrokerConnectionLimitProviders(_Rules):
    """See services.mgmt.tree.category.Category."""

    kind = BrokerConnectionLimitProvider


class VirtualHostConnectionLimitProviders(_Rules):
    """See services.mgmt.tree.category.Category."""

    kind = VirtualHostConnectionLimitProvider


def _check_more(text: str) -> None:
    """Of rules that come to others. Raises SyntaxFault, and IllegalConfiguration for what would change those."""
    parse(text)
    if line := next((each for each in lines(text) if each.tokens[0].lower() == "config"), None):
        raise IllegalConfiguration(
            f"parameter 'path': CONFIG at line {line.number} would count for rules that are here: say each one's period"
        )


def _host_of(parent: ConfiguredObject | None) -> str | None:
    """None: the broker."""
    return parent.actual["name"] if parent and parent.path else None
