"""Links of AMQP 1.0 that outlive their connections (3.5.6): one has each at a time, and who closes it ends it."""

from __future__ import annotations

from collections.abc import Iterator

from tests.simulation.history import NEVER, Consuming
from tests.simulation.judge.facts import Facts, Violation, told

_SOON = 1.0  # seconds in which the former hears that its link is stolen


def kept(facts: Facts) -> Iterator[Violation]:
    """What its client has closed, and nobody had taken by then, is gone in the end, and its queue."""
    ended = {(each.host, each.arguments["queue"]): each for each in facts.history.asked if each.what == "unsubscribe"}
    for host, name, said, _, _ in facts.history.counts:
        if said >= 0 and (host, name) in ended and ended[host, name].outcome == "ok":
            yield Violation("a closed link is gone", f"queue {name} is there, with {said} messages")


def stolen(facts: Facts) -> Iterator[Violation]:
    """Where nothing fails: whoever had it is given nothing more that is published, and hears of it (2.6.1)."""
    for former, thief in _thefts(facts) if not facts.history.faults else ():
        assert thief.attached is not None
        since = facts.history.time_of(thief.attached)
        if facts.history.time_of(_end(former)) > since + _SOON:
            text = f"{former.tag} of {_client(former)} was taken by {_client(thief)} at {since:.3f} s, and stays"
            yield Violation("a stolen link ends", text)
        for each in facts.history.deliveries:
            sent = facts.history.sent.get(each.id)
            if sent and each.consumer is former and sent.at > thief.attached and not each.deaths:
                text = f"{told(sent)} was delivered to {_client(former)}, from whom {former.tag} had been stolen"
                yield Violation("a stolen link is given nothing", text)


def _thefts(facts: Facts) -> Iterator[tuple[Consuming, Consuming]]:
    """Who had a link, and who attached it after that."""
    names = {asked.arguments["queue"] for asked in facts.history.asked if asked.what == "subscribe"}
    for (_, name), consumers in facts.consumers.items():
        those = [each for each in consumers if name in names and each.attached is not None and each.tag != "drain"]
        for former in those:
            for thief in those:
                if former is not thief and (former.attached or NEVER) < thief.asked < _end(former):
                    yield former, thief


def _end(consuming: Consuming) -> int:
    return min(NEVER if consuming.ending is None else consuming.ending, consuming.channel.held_until)


def _client(consuming: Consuming) -> str:
    return consuming.channel.connection.client
