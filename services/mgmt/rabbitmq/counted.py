"""Rows of queues and virtual hosts with what is counted of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from operator import itemgetter
from typing import Any, Final

from services.common.topology.policies import Policy
from services.mgmt.rabbitmq.described import CLASSIC, described
from services.mgmt.rabbitmq.objects import Row
from services.mgmt.rabbitmq.sections import Broker
from services.mgmt.tree.counts import Row as Counts
from services.rpc.counts_pb2 import Consumer

_NOTHING: Final = Counts(0, 0, 0)
_KEPT: Final = ("name", "vhost", "durable", "auto_delete", "exclusive", "arguments")
"""Fields of a queue that are told as they are kept."""


class Counted:
    """As it was counted last."""

    def __init__(self, broker: Broker) -> None:
        self._objects = broker.objects
        self._house = broker.house
        self._rows = broker.house.counts.last.rows
        self._consumers = broker.house.counts.last.consumers
        rows = self._rows.get
        self._owner = broker.house.purging.owner_of
        self.quick: Mapping[str, Callable[[Row], Any]] = {
            "messages": lambda row: (its := rows(row["id"], _NOTHING)).ready + its.unsettled,
            "messages_ready": lambda row: rows(row["id"], _NOTHING).ready,
            "messages_unacknowledged": lambda row: rows(row["id"], _NOTHING).unsettled,
            "memory": lambda row: rows(row["id"], _NOTHING).bytes,
            "consumers": lambda row: len(self.consumers_of(row)),
            "node": lambda row: self._owner(row["partition"]),
            "state": self._state,
            "type": _type,
            "exclusive_consumer_tag": lambda row: _exclusive(self.consumers_of(row)),
            "single_active_consumer_tag": lambda row: _single(row, self.consumers_of(row)),
            "policy": lambda row: _name(self._objects.governed.of(row).policy),
            "operator_policy": lambda row: _name(self._objects.governed.of(row).operator),
            "effective_policy_definition": lambda row: self._objects.governed.of(row).definition,
            "changed_arguments": lambda row: row.get("changed_arguments"),
            **{name: itemgetter(name) for name in _KEPT},
        }
        """All columns of queues, to sort them before they are told."""

    def _of(self, queue: Row) -> Counts:
        return self._rows.get(queue["id"], _NOTHING)

    def consumers_of(self, queue: Row) -> list[Consumer]:
        """Of one queue."""
        return self._consumers.get(queue["id"], [])

    def queue(self, row: Row) -> Row:
        """A row of a list of queues."""
        counts, consumers = self._of(row), self.consumers_of(row)
        return {
            **{name: row[name] for name in _KEPT},
            "type": _type(row),
            "node": self._owner(row["partition"]),
            "state": self._state(row),
            **self._governed(row),
            **_messages(counts.ready, counts.unsettled),
            "memory": counts.bytes,
            "consumers": len(consumers),
            "exclusive_consumer_tag": _exclusive(consumers),
            "single_active_consumer_tag": _single(row, consumers),
        }

    def _governed(self, row: Row) -> Row:
        found = self._objects.governed.of(row)
        said: Row = {
            "policy": _name(found.policy),
            "operator_policy": _name(found.operator),
            "effective_policy_definition": found.definition,
        }
        return said | ({"changed_arguments": row["changed_arguments"]} if "changed_arguments" in row else {})

    def _state(self, row: Row) -> str:
        return "running" if row["id"] in self._rows else "starting"

    def queue_and_consumers(self, row: Row) -> Row:
        """One queue, with its consumers and its owner."""
        details = [self.consumer(row, each) for each in self.consumers_of(row)]
        owner = {"owner_pid_details": {"name": row["owner"]}} if "owner" in row else {}
        return {**self.queue(row), "consumer_details": details, **owner}

    def host(self, name: str) -> Row:
        """A row of a list of virtual hosts."""
        metadata = described(self._house, name)
        return {
            "name": name,
            "default_queue_type": CLASSIC,
            **metadata,
            "metadata": metadata,
            "tracing": False,
            "cluster_state": {},
            **self.totals([name]),
        }

    def totals(self, hosts: Iterable[str]) -> Row:
        """What waits, and is out, in some virtual hosts."""
        counts = [self._of(row) for host in hosts for row in self._objects.queues(host)]
        return _messages(sum(each.ready for each in counts), sum(each.unsettled for each in counts))

    def consumer(self, queue: Row, consumer: Consumer) -> Row:
        """A row of a list of consumers."""
        return {
            "queue": {"name": queue["name"], "vhost": queue["vhost"]},
            "consumer_tag": consumer.tag,
            "exclusive": consumer.exclusive,
            "ack_required": not consumer.settled,
            "active": consumer.live,
            "activity_status": "up" if consumer.live else "waiting",
            "arguments": {"x-priority": consumer.priority} if consumer.priority else {},
            "channel_details": {"connection_name": consumer.connection},
        }


def _type(row: Row) -> str:
    kind: str = row["arguments"].get("x-queue-type", CLASSIC)
    return kind


def _exclusive(consumers: Iterable[Consumer]) -> str | None:
    return next((each.tag for each in consumers if each.exclusive), None)


def _single(row: Row, consumers: Iterable[Consumer]) -> str | None:
    if not row["arguments"].get("x-single-active-consumer"):
        return None
    return next((each.tag for each in consumers if each.live), None)


def _name(policy: Policy | None) -> str | None:
    return policy.name if policy else None


def _messages(ready: int, unsettled: int) -> Row:
    return {"messages": ready + unsettled, "messages_ready": ready, "messages_unacknowledged": unsettled}
