"""What clients of AMQP 1.0 say of messages that they give back (part 3, 3.4.5): it is not given again to whom it is not
for, and what they have added to it is there.
"""

from __future__ import annotations

from collections.abc import Iterator

from tests.simulation.choices import TIMEOUT
from tests.simulation.history import NEVER, SAID, Delivered
from tests.simulation.judge.facts import Facts, Violation, told


def refused(facts: Facts) -> Iterator[Violation]:
    """Whoever fails: a link is not given again what it has called undeliverable, once the broker has read that."""
    for (_, name, message), deliveries in facts.deliveries.items():
        sent = facts.history.sent.get(message)
        for before in deliveries:
            if not before.refused or sent is None:
                continue
            since = NEVER if before.known is None else before.known
            for each in deliveries:
                if each.consumer is before.consumer and each.at > since and each.deaths == before.deaths:
                    tag = each.consumer.tag if each.consumer else ""
                    yield Violation("undeliverable here", f"{told(sent)} was delivered from {name} to {tag} again")


def unsaid(facts: Facts) -> Iterator[Violation]:
    """Whoever fails: no annotation is delivered that nobody has given the message."""
    said: dict[tuple[str, str], set[str]] = {}
    for each in facts.history.deliveries:
        said.setdefault((each.host, each.id), set()).add(each.said)
    for each in facts.history.deliveries:
        found, sent = _annotation(each), facts.history.sent.get(each.id)
        if found and sent and found not in said[each.host, each.id]:
            yield Violation("annotations are said by somebody", f"{told(sent)} came with {found!r}")


def unheard(facts: Facts) -> Iterator[Violation]:
    """Where nothing fails: a message has the annotation that it was given back with last."""
    if facts.history.faults:
        return
    for (host, name, message), deliveries in facts.deliveries.items():
        sent, last = facts.history.sent.get(message), ""
        for each in deliveries:
            if sent is None or each.deaths or TIMEOUT in facts.queues[host, name].arguments:
                break
            if _annotation(each) != last and not facts.gone_unseen(sent, facts.queues[host, name], each.at):
                yield Violation("annotations are added", f"{told(sent)} came with {_annotation(each)!r}, not {last!r}")
            last = each.said or last


def _annotation(delivered: Delivered) -> str:
    return str((delivered.properties.headers or {}).get(SAID, ""))
