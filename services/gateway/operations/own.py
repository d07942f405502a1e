"""What a connection publishes where a consumer of its own does not want that (no-local): it says who has published it.

That costs connections alone that have such a consumer: what others publish is alike, whoever has published it.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from services.common.clients.outbound import Targets
from services.common.message.facts import Facts


def told(facts: Sequence[Facts], publisher: str) -> list[Facts]:
    """The same with who has published them; equal ones are one object."""
    its = {each: each._replace(publisher=publisher) for each in dict.fromkeys(facts)}
    return [its[each] for each in facts]


def spared(targets: Sequence[Targets], queues: AbstractSet[int]) -> list[Targets]:
    """The same without these queues; equal ones are one object."""
    its = {every: tuple(each for each in every if each not in queues) for every in dict.fromkeys(targets)}
    return [its[every] for every in targets]
