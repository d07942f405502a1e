"""What of an account must not be. Pure: nothing here knows how the account came about.

A redelivery has a reason when the consumer that had the message is gone, or when its gateway was killed or cut off
meanwhile. A connection may end when its gateway was disturbed, or when its client ends it. All else is a finding.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

from tests.support.chaos.account import AWAY, PAUSE, Account, Delivery, Disturbance, Message, Writing

# A client may learn of its gateway's disturbance late: when nothing answers, by its heartbeats.
LATE_SECONDS = 20.0

_MESSAGE_ID = re.compile(r"\S+#\d+ of [\w.-]+")


@dataclass(slots=True)
class Verdict:
    """Findings by kind, and the redeliveries that have a reason, by reason."""

    findings: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    redelivered: dict[str, int] = field(default_factory=lambda: defaultdict(int))

    @property
    def ok(self) -> bool:
        return not any(self.findings.values())

    def messages(self, of_each: int) -> Iterator[str]:
        """Message-ids of the first findings of each kind, where these are about messages."""
        for findings in self.findings.values():
            yield from (found[0] for each in findings[:of_each] if (found := _MESSAGE_ID.match(each)))


def check(account: Account) -> Verdict:
    """Accounts for every message, connection and write."""
    verdict = Verdict()
    for message in account.messages.values():
        _check_fate(message, verdict)
        for first, second in pairwise(message.deliveries):
            _check_redelivery(account, message, first, second, verdict)
    _add(verdict, "strange", account.strange)
    _add(verdict, "reordered", _reordered(account))
    _add(verdict, "broken connections", _broken(account))
    _add(verdict, "left over", (f"{count} in {queue}" for queue, count in account.left_over.items() if count))
    _add(verdict, "stale writes", _stale(account.writings))
    return verdict


def _check_fate(message: Message, verdict: Verdict) -> None:
    name = _name(message)
    if message.confirmed is not None and not message.deliveries:
        verdict.findings["lost"].append(f"{name}, confirmed at {message.confirmed:.3f}")
    if message.refused:
        verdict.findings["refused"].append(f"{name}: {message.refused}")
    for delivery in message.deliveries:
        if delivery.queue != message.id.queue:
            verdict.findings["strange"].append(f"{name} in {delivery.queue}")


def _check_redelivery(account: Account, message: Message, first: Delivery, second: Delivery, verdict: Verdict) -> None:
    reason = _reason(account, first, second)
    if not reason and first.redelivered and not second.redelivered:
        # Two sockets, read in one turn of the clients' loop: what is marked was sent later, whichever came first.
        reason = _reason(account, second, first)
    if reason:
        verdict.redelivered[reason] += 1
        return
    acknowledged = ", acknowledged" if message.id in account.acknowledged else ""
    verdict.findings["delivered again"].append(
        f"{_name(message)} at {second.at:.3f} to {second.consumer}{' (redelivered)' if second.redelivered else ''}, "
        f"and at {first.at:.3f} to {first.consumer}, which lives{acknowledged}"
    )


def _reason(account: Account, first: Delivery, second: Delivery) -> str:
    connection = account.connections[first.connection]
    for disturbance in account.disturbances:
        meanwhile = disturbance.began <= second.at and disturbance.ended >= first.at
        if meanwhile and disturbance.target == connection.gateway and disturbance.kind in AWAY:
            return f"gateway {disturbance.kind}"
    if connection.ended is not None and connection.ended <= second.at:
        return "connection ended"
    return ""


def _reordered(account: Account) -> Iterator[str]:
    """First deliveries to one consumer of what one producer published, in the order in which they came."""
    ways: dict[tuple[str, str], list[tuple[Delivery, Message]]] = defaultdict(list)
    for message in account.messages.values():
        for delivery in message.deliveries[:1]:
            if not delivery.redelivered:
                ways[message.id.producer, delivery.consumer].append((delivery, message))
    consumers = _consumers(account)
    for (_, consumer), way in ways.items():
        way.sort(key=lambda step: step[0].at)
        for (earlier, before), (delivery, after) in pairwise(way):
            if after.id.number < before.id.number and not _came_back(account, consumers, after, delivery):
                yield (
                    f"{_name(after)} at {delivery.at:.3f} after number {before.id.number} at {earlier.at:.3f}, "
                    f"to {consumer}"
                )


def _consumers(account: Account) -> Mapping[str, set[str]]:
    """Connections that consume, by queue."""
    found: dict[str, set[str]] = defaultdict(set)
    for message in account.messages.values():
        for delivery in message.deliveries:
            found[delivery.queue].add(delivery.connection)
    return found


def _came_back(account: Account, consumers: Mapping[str, set[str]], message: Message, delivery: Delivery) -> bool:
    """Whether another consumer was to have it first, and was cut off from what delivered it: others went on meanwhile.

    Of two that take turns, each has every other message. What one did not get is the other's then, behind what that
    had been sent before.
    """
    disturbed = any(each.began <= delivery.at and each.ended >= message.published for each in account.disturbances)
    others = (account.connections[name] for name in consumers[delivery.queue] - {delivery.connection})
    return disturbed and any(
        other.opened <= delivery.at and (other.ended is None or other.ended >= message.published) for other in others
    )


def _broken(account: Account) -> Iterator[str]:
    for connection in account.connections.values():
        if connection.ended is None or connection.by_client:
            continue
        if not any(_excuses(disturbance, connection.gateway, connection.ended) for disturbance in account.disturbances):
            yield f"{connection.name} to {connection.gateway} at {connection.ended:.3f}: {connection.why}"


def _excuses(disturbance: Disturbance, gateway: str, at: float) -> bool:
    is_its = disturbance.target == gateway and disturbance.kind in {*AWAY, PAUSE}
    return is_its and disturbance.began <= at <= disturbance.ended + LATE_SECONDS


def _stale(writings: list[Writing]) -> Iterator[str]:
    """A process writes only to partitions whose lease it has: a writer is one member's, which may have several."""
    known: dict[int, Writing] = {}
    for writing in sorted(writings, key=lambda writing: -writing.count):
        if not writing.member:  # given back, and not held yet: its former holder is still the only one
            continue
        if known.setdefault(writing.writer, writing).member != writing.member:
            yield (
                f"writer {writing.writer} wrote {writing.count} times to partition {writing.partition}, "
                f"which {writing.member} had in epoch {writing.epoch}"
            )


def _add(verdict: Verdict, kind: str, found: Iterator[str] | list[str]) -> None:
    verdict.findings[kind].extend(found)


def _name(message: Message) -> str:
    return str(message.id)
