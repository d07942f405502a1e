"""Waits for messages on behalf of their publisher, until they are returned, confirmed or refused."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import TYPE_CHECKING

from services.common.clients.outbound import Refused, Targets
from services.common.topology.slots import SlotId
from services.gateway.vocabulary import Publish, Returned
from services.rpc import queue_pb2

if TYPE_CHECKING:
    from services.gateway.observe.observer import Followed
    from services.gateway.sessions.session import Session

_UNREADY = frozenset({int(queue_pb2.NO_CONSUMERS)})
_FULL = frozenset({int(queue_pb2.OVERFLOW), int(queue_pb2.OTHER)})


@dataclass(slots=True)
class PublishTicket:
    """Waits for messages on behalf of their publisher."""

    session: Session
    request: Publish | None  # only if some may be returned: it keeps all bodies in memory as long as one of them waits
    targets: Sequence[Targets]
    followed: Followed
    first: int  # confirm number of the first message; 0 without confirms, which may begin before it settles

    def settled(self, numbers: Sequence[int], refusals: list[Refused]) -> None:
        session = self.session
        refused: frozenset[int] = frozenset()
        try:
            if refusals:
                if self.request and (unready := self._refused(refusals, _UNREADY, everywhere=True)):
                    session.send_back(Returned(self.request, sorted(unready), no_consumers=True))
                    self.followed.unready(sorted(unready))
                refused = self._refused(refusals, _FULL, everywhere=False)
            if self.first and session.confirm(self.first, numbers, refused):
                self.followed.confirmed(numbers, refused)
        except Exception as fault:  # noqa: BLE001 - this publisher's, whatever it is
            session.connection.fault("telling a publisher what became of its messages", fault)

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
