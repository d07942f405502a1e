"""Which messages have something in common: facets of them, each told by rows of one kind. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from services.common.question import FATES, OUTSIDE_QUEUES, Sought
from services.mgmt.lookup.patterns import fits

_EACH = {name: f"({fits(name, f'sought_{name}')})" for name in ("queue", "routing_key")}
_BY = f"{fits('client', 'sought_client')} or connection = $sought_client"
_TO = f"{fits('consumer', 'sought_consumer')} or {fits('client', 'sought_consumer')} or connection = $sought_consumer"
# A gateway that was killed may not have said that it routed what the queue has got.
_CAME = "stage in ('routed', 'enqueued')"
_HERE = "virtual_host = $sought_virtual_host"
# Who was moved by hand is no dead letter, though the stage is one.
_BY_HAND = {"moved": "reason = 'moved'", "dead_lettered": "reason is distinct from 'moved'"}
_ONE_OF = "connection in (select unnest(${}::varchar[]))"


@dataclass(frozen=True, slots=True)
class Facets:
    """Conditions on rows of `stages`; a message fits that is in a row of each. The first says when it was."""

    conditions: list[str]
    parameters: dict[str, str | Sequence[str]]


@dataclass(frozen=True, slots=True)
class Letters:
    """Conditions on dead letters: `facets` of their own, and on the row `received` of what they were at first."""

    facets: Facets
    here: str  # of every row
    publisher: str
    parameters: dict[str, str | Sequence[str]]  # of both of these


def letters(sought: Sought, publishers: Sequence[str] = (), consumers: Sequence[str] = ()) -> Letters | None:
    """What is sought, of a dead letter whose first message has the publisher; None where no dead letter is sought.

    As `facets`; a message itself is found by its publisher alone.
    """
    if not sought.client or sought.fate in OUTSIDE_QUEUES:
        return None
    if not (sought.queue or sought.key or sought.fate or sought.consumer):
        return None
    own = replace(sought, client="")
    to = _peer(_TO, "consumers", consumers)
    said = [*_said(own, to), _all("stage = 'routed'", "service = 'queue'", *_routed(own))]
    by, here = _peer(_BY, "publishers", publishers), _HERE
    peers = {"publishers": publishers, "consumers": consumers}
    return Letters(_of(said, sought, peers), here, by, _used(f"{here} {by}", sought, peers))


def facets(sought: Sought, publishers: Sequence[str] = (), consumers: Sequence[str] = ()) -> Facets:
    """Of something that has no `fault`. First its fate, else its delivery, else its publish.

    `publishers` and `consumers` are connections besides, whose user or address is the client or the consumer.
    """
    by, to = _peer(_BY, "publishers", publishers), _peer(_TO, "consumers", consumers)
    said = _said(sought, to)
    if sought.client or sought.key or not said or _is_elsewhere(sought):
        said.append(_publish(sought, by))
    return _of(said, sought, {"publishers": publishers, "consumers": consumers})


def _peer(names: str, connections: str, known: Sequence[str]) -> str:
    return f"({names} or {_ONE_OF.format(connections)})" if known else f"({names})"


def _said(sought: Sought, to: str) -> list[str]:
    return [condition for condition in (_fate(sought), _delivery(sought, to)) if condition]


def _of(said: Sequence[str], sought: Sought, peers: Mapping[str, Sequence[str]]) -> Facets:
    conditions = [f"{_HERE} and {condition}" for condition in said]
    return Facets(conditions, _used(" ".join(conditions), sought, peers))


def _used(text: str, sought: Sought, peers: Mapping[str, Sequence[str]]) -> dict[str, str | Sequence[str]]:
    given: dict[str, str | Sequence[str]] = {
        **peers,
        "sought_virtual_host": sought.virtual_host,
        "sought_queue": sought.queue,
        "sought_client": sought.client,
        "sought_consumer": sought.consumer,
        "sought_routing_key": sought.key,
        "sought_outcome": FATES.get(sought.fate, ("", ""))[1],
    }
    return {name: value for name, value in given.items() if f"${name}" in text}


def _is_elsewhere(sought: Sought) -> bool:
    """Whether it is the publish that says which queue it was."""
    return bool(sought.queue) and sought.fate in OUTSIDE_QUEUES


def _fate(sought: Sought) -> str:
    if not sought.fate:
        return ""
    stage, outcome = FATES[sought.fate]
    queue = "" if sought.fate in OUTSIDE_QUEUES else _queue(sought)
    return _all(
        f"stage = '{stage}'", "outcome = $sought_outcome" if outcome else "", _BY_HAND.get(sought.fate, ""), queue
    )


def _delivery(sought: Sought, to: str) -> str:
    return _all("stage = 'sent'", to, _queue(sought)) if sought.consumer else ""


def _publish(sought: Sought, by: str) -> str:
    if sought.queue:
        stage = "stage = 'routed'" if sought.key or sought.client or _is_elsewhere(sought) else _CAME
    else:
        # A dead letter is routed by the owner of the queue that it comes from.
        stage = "stage = 'received'" if sought.client else "(stage = 'received' or (stage = 'routed' and client = ''))"
    return _all(stage, *_routed(sought), by if sought.client else "")


def _routed(sought: Sought) -> tuple[str, str]:
    return _EACH["routing_key"] if sought.key else "", _queue(sought)


def _queue(sought: Sought) -> str:
    return _EACH["queue"] if sought.queue else ""


def _all(*conditions: str) -> str:
    return " and ".join(condition for condition in conditions if condition)
