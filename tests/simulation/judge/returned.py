"""What is returned since nobody could take it at once has been given to nobody."""

from __future__ import annotations

from collections.abc import Iterator

from tests.simulation.history import Delivered, Sent
from tests.simulation.judge.facts import Facts, Violation, told

_NO_CONSUMERS = 313


def had(facts: Facts) -> Iterator[Violation]:
    """An immediate message is returned, or somebody has it: not both, whoever dies.

    Who gave it back, or went with it unsettled, does not have it: then it may be returned to its publisher.
    """
    for sent in facts.history.sent.values():
        if sent.returned is None or sent.return_code != _NO_CONSUMERS:
            continue
        for name in sorted(facts.routes(sent).may):
            for each in facts.delivered(sent.host, name, sent.id):
                if not each.deaths and _has(facts, each, sent):
                    how = each.settled_as or "held"
                    yield Violation(
                        "what is returned nobody has",
                        f"{told(sent)} was returned, and given from {name} to {each.channel.connection.client} ({how})",
                    )


def _has(facts: Facts, delivered: Delivered, sent: Sent) -> bool:
    """Whether its gateway could know, and say, that its client has it."""
    if delivered.settled_as == "requeue" or not _may_say(facts, delivered.channel.connection.gateway, sent):
        return False
    if delivered.settled_as == "none":  # it was done with as it was sent, and nobody but its owner knew
        return not facts.owners_may_die
    return delivered.known is not None or delivered.channel.held_until > (sent.returned or 0)


def _may_say(facts: Facts, gateway: str, sent: Sent) -> bool:
    """Whether owners hear in time what its clients have; of what it sends again itself they do however late it is."""
    if gateway == sent.channel.connection.gateway:
        return not facts.faults("kill", "stop", of=gateway)
    return facts.was_heard_late(gateway) and not facts.may_be_deaf(gateway, late=True)
