"""Which messages have something in common: facets of them, each told by rows of one kind. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from services.common.question import FATES, OUTSIDE_QUEUES, Sought
from services.mgmt.lookup.patterns import fits

_EACH = {name: f"({fits(name, f'sought_{name}')})" for name in ("queue", "routing_key")}
_BY = f"{fits('client', 'sought_client')} or connection = $sought_client"
_TO = f"{fits('consumer', 'sought_consumer')} or {fits('client', 'sought_consumer')} or connection = $sought_consumer"
_ONE_OF = "connection in (select unnest(${}::varchar[]))"


@dataclass(frozen=True, slots=True)
class Facets:
    """Conditions on rows of `stages`; a message fits that is in a row of each. The first says when it was."""

    conditions: list[str]
    parameters: dict[str, str | Sequence[str]]


def facets(sought: Sought, publishers: Sequence[str] = (), consumers: Sequence[str] = ()) -> Facets:
    """Of something that has no `fault`. First its fate, else its delivery, else its publish.

    `publishers` and `consumers` are connections besides, whose user or address is the client or the consumer.
    """
    by = f"({_BY} or {_ONE_OF.format('publishers')})" if publishers else f"({_BY})"
    to = f"({_TO} or {_ONE_OF.format('consumers')})" if consumers else f"({_TO})"
    said = [condition for condition in (_fate(sought), _delivery(sought, to)) if condition]
    if sought.client or sought.key or not said or _is_elsewhere(sought):
        said.append(_publish(sought, by))
    conditions = [f"virtual_host = $sought_virtual_host and {condition}" for condition in said]
    used = " ".join(conditions)
    given: dict[str, str | Sequence[str]] = {
        "publishers": publishers,
        "consumers": consumers,
        "sought_virtual_host": sought.virtual_host,
        "sought_queue": sought.queue,
        "sought_client": sought.client,
        "sought_consumer": sought.consumer,
        "sought_routing_key": sought.key,
        "sought_outcome": FATES.get(sought.fate, ("", ""))[1],
    }
    return Facets(conditions, {name: value for name, value in given.items() if f"${name}" in used})


def _is_elsewhere(sought: Sought) -> bool:
    """Whether it is the publish that says which queue it was."""
    return bool(sought.queue) and sought.fate in OUTSIDE_QUEUES


def _fate(sought: Sought) -> str:
    if not sought.fate:
        return ""
    stage, outcome = FATES[sought.fate]
    queue = "" if sought.fate in OUTSIDE_QUEUES else _queue(sought)
    return _all(f"stage = '{stage}'", "outcome = $sought_outcome" if outcome else "", queue)


def _delivery(sought: Sought, to: str) -> str:
    return _all("stage = 'sent'", to, _queue(sought)) if sought.consumer else ""


def _publish(sought: Sought, by: str) -> str:
    key = _EACH["routing_key"] if sought.key else ""
    if sought.queue:
        stage = "stage = 'routed'"
    else:
        # A dead letter is routed by the owner of the queue that it comes from.
        stage = "stage = 'received'" if sought.client else "(stage = 'received' or (stage = 'routed' and client = ''))"
    return _all(stage, key, _queue(sought), by if sought.client else "")


def _queue(sought: Sought) -> str:
    return _EACH["queue"] if sought.queue else ""


def _all(*conditions: str) -> str:
    return " and ".join(condition for condition in conditions if condition)
