"""Waits for messages on behalf of their publisher, until they are returned, confirmed or refused."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from services.common.clients.outbound import Refused, Targets
from services.common.errors import ResourceError
from services.common.topology.slots import SlotId
from services.gateway.answers import Returned
from services.gateway.outcomes import ACCEPTED, Rejected
from services.gateway.vocabulary import Publish
from services.rpc import queue_pb2

if TYPE_CHECKING:
    from services.gateway.observe.observer import Followed
    from services.gateway.sessions.session import Session

_UNREADY = frozenset({int(queue_pb2.NO_CONSUMERS)})
_FULL = frozenset({int(queue_pb2.OVERFLOW), int(queue_pb2.OTHER)})
REFUSED: Final = Rejected(ResourceError("a queue of it is full, or cannot take it"))


@dataclass(slots=True)
class PublishTicket:
    """Waits for messages on behalf of their publisher."""

    session: Session
    request: Publish | None  # only if some may be returned: it keeps all bodies in memory as long as one of them waits
    targets: Sequence[Targets]
    followed: Followed
    link: int  # by which they were published …
    first: int  # … and the first message's number; 0: only what comes back is told

    def settled(self, numbers: Sequence[int], refusals: list[Refused]) -> None:
        session = self.session
        refused: frozenset[int] = frozenset()
        try:
            if refusals:
                if self.request and (unready := self._refused(refusals, _UNREADY, everywhere=True)):
                    session.send_back(Returned(self.request, sorted(unready), no_consumers=True))
                    self.followed.unready(sorted(unready))
                refused = self._refused(refusals, _FULL, everywhere=False)
            if self.first and self._tell(numbers, refused):
                self.followed.confirmed(numbers, refused)
        except Exception as fault:  # noqa: BLE001 - this publisher's, whatever it is
            session.connection.fault("telling a publisher what became of its messages", fault)

    def _tell(self, numbers: Sequence[int], refused: AbstractSet[int]) -> bool:
        """False when the publisher cannot be told any more."""
        if refused:
            self.session.confirm(self.link, self.first, sorted(refused), REFUSED)
            numbers = [number for number in numbers if number not in refused]
        return self.session.confirm(self.link, self.first, numbers, ACCEPTED)

    def _refused(self, refusals: list[Refused], reasons: AbstractSet[int], *, everywhere: bool) -> frozenset[int]:
        """Messages that some queue (`everywhere`: each of their queues) refused for one of the reasons."""
        queues: dict[int, set[SlotId]] = {}
        for numbers, queue_id, reason in refusals:
            if reason in reasons:
                for number in numbers:
                    queues.setdefault(number, set()).add(queue_id)
        return frozenset(
            number for number, its in queues.items() if not everywhere or its.issuperset(self.targets[number])
        )
