"""What is kept of a link that outlives its connection: a queue of its container's, which any gateway can take up.

The router owns that as any queue definition: its name says whose link it is, its owner is the container of one user,
and one of its arguments what it is bound to. Its messages are a queue's.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from services.common.arguments.queue import EXCLUSIVITY
from services.common.message import LONGEST_NAME
from services.gateway.protocols.amqp_1_0.termini import Source

NEVER: Final = "never"
"""The expiry-policy of an end that stays (part 3, section 3.5.6)."""

_PREFIX: Final = "qpidsub_/"  # as Broker-J calls such queues
_RECORD: Final = "x-durable-link"
_OWNER: Final = "PRINCIPAL_CONTAINER"  # anybody may call itself as another does: what a container has is its user's too


class Record(NamedTuple):
    """What such a link receives, and from where."""

    container: str
    link: str
    address: str  # of its source, as its client says it
    key: str  # by which its queue is bound
    selector: str  # "": it wants all
    not_own: bool = False  # but for what its own connection sends

    @property
    def arguments(self) -> dict[str, Any]:
        """Of its queue."""
        return {EXCLUSIVITY.name: _OWNER, _RECORD: self._asdict()}


_KINDS: Final = tuple((name, bool if name == "not_own" else str) for name in Record._fields)


def outlives_connection(source: object) -> bool:
    """Whether a receiver's end here is to be there when its connection is not; without one, it is to be found again."""
    return source is None or (isinstance(source, Source) and source.expiry_policy == NEVER and not source.dynamic)


def queue_of(container: str, link: str) -> str:
    """The name of the queue; of names that leave no room in one, their digest."""
    name = f"{_PREFIX}{quote(container, safe='')}_/{quote(link, safe='')}"
    if len(name) <= LONGEST_NAME:
        return name
    return f"{_PREFIX}{sha256(f'{len(container)} {container} {link}'.encode()).hexdigest()}"


def record_in(arguments: Mapping[str, Any]) -> Record | None:
    """What a queue's arguments say, if it is such a link's. Its owner is as they say: the router has seen to that."""
    said = arguments.get(_RECORD) if arguments.get(EXCLUSIVITY.name) == _OWNER else None
    if not isinstance(said, Mapping) or not all(isinstance(said.get(name), kind) for name, kind in _KINDS):
        return None
    return Record(*(said[each] for each in Record._fields))
