"""Policies in RabbitMQ's words, and which of them each queue has: read from the records that the tree follows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from services.common.arguments import policies
from services.common.errors import NotFound
from services.common.topology.policies import Governing, Policies, Policy
from services.mgmt.tree.mirror import Mirror

Row = dict[str, Any]

_NONE: Final = Policies()
_KIND: Final = "policy"
OPERATORS: Final = "operator_policy"
"""Component of the parameters that operators' policies are in definitions."""


class GovernedQueues:
    """Of all virtual hosts. What is read of records is kept until one of them changes."""

    def __init__(self, mirror: Mirror) -> None:
        self._mirror = mirror
        self._stamp: tuple[int, ...] = ()
        self._of_hosts: dict[str, Policies] = {}

    def policies(self, virtual_host: str) -> Policies:
        """As the router has them; to be read only."""
        if (stamp := self._mirror.stamp((_KIND,))) != self._stamp:
            self._stamp, self._of_hosts = stamp, {}
            for value in self._mirror.values(_KIND):
                self._of_hosts.setdefault(value["virtual_host"], Policies()).set(_policy(value))
        return self._of_hosts.get(virtual_host, _NONE)

    def rows(self, virtual_host: str, *, operator: bool) -> list[Row]:
        """By name."""
        found = (each for each in self.policies(virtual_host) if each.operator is operator)
        return [row(each) for each in sorted(found, key=lambda each: each.name)]

    def row(self, virtual_host: str, name: str, *, operator: bool) -> Row:
        """Raises NotFound."""
        found = self.policies(virtual_host).get(name, operator=operator)
        if found is None:
            raise NotFound(f"no {'operator ' if operator else ''}policy '{name}' in vhost '{virtual_host}'")
        return row(found)

    def of(self, queue: Mapping[str, Any]) -> Governing:
        """Those of a queue, by its row."""
        its = self.policies(queue["vhost"])
        return its.of(queue["name"], queue["arguments"].get("x-queue-type", "")) if its else Governing(None, None)


def row(policy: Policy) -> Row:
    """As RabbitMQ tells of one."""
    return {
        "vhost": policy.virtual_host,
        "name": policy.name,
        "pattern": policy.pattern,
        "apply-to": policy.apply_to,
        "definition": policies.loaded(policy.definition),
        "priority": policy.priority,
    }


def parameter(row: Row) -> Row:
    """An operator's policy as it is in definitions."""
    value = {name: row[name] for name in ("apply-to", "definition", "pattern", "priority")}
    return {"vhost": row["vhost"], "component": OPERATORS, "name": row["name"], "value": value}


def _policy(value: Mapping[str, Any]) -> Policy:
    return Policy(**{**value, "definition": value["definition"].encode()})
