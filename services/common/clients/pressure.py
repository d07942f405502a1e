"""Why publishers wait, and which: grouped by the reason, so that news of one reason costs the others no work."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from services.common.containment import for_each
from services.common.topology.slots import SlotId

if TYPE_CHECKING:
    from services.common.clients.queue_link import QueueLink


class Congestion(enum.Enum):
    """Why a publisher should wait."""

    FULL = "wait until what is under way has been taken"
    BLOCKED = "wait until consumers have made room: a queue has more than its share of memory"


@dataclass(slots=True)
class Pressure:
    """What `publish` answers when a publisher should wait; `link` says for which process, None for parked messages.

    `queue_ids` are the queues that it published to on that link, some of which are full.
    """

    state: Congestion
    link: QueueLink | None
    queue_ids: Sequence[SlotId] = ()


def pressure_on(queue_ids: Iterable[SlotId], link_of: Callable[[SlotId], QueueLink | None]) -> Pressure | None:
    """Why who publishes to these queues should wait, when one of them is full; `link_of` gives the link to a queue."""
    by_link: dict[QueueLink, list[SlotId]] = {}
    for queue_id in queue_ids:
        if link := link_of(queue_id):
            by_link.setdefault(link, []).append(queue_id)
    full = (Pressure(Congestion.BLOCKED, link, tuple(its)) for link, its in by_link.items() if link.is_full(its))
    return next(full, None)


class _Wait(NamedTuple):
    queue_ids: frozenset[SlotId]
    callback: Callable[[], None]


class Held:
    """The publishers that were told to wait. Those that wait for the same reason go on in their order."""

    def __init__(self) -> None:
        self._waiting: dict[tuple[QueueLink | None, Congestion], dict[object, _Wait]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._waiting.values()))

    def add(self, pressure: Pressure, who: object, callback: Callable[[], None]) -> None:
        """Calls back once, unless `who` is forgotten before.

        A second wait for the same reason makes one of both: none of the queues of either may be full then.
        """
        waiting = self._waiting.setdefault((pressure.link, pressure.state), {})
        before = waiting[who].queue_ids if who in waiting else frozenset[SlotId]()
        waiting[who] = _Wait(before.union(pressure.queue_ids), callback)

    def forget(self, who: object) -> None:
        """`who` is gone, and is not called back, however long the others wait."""
        for waiting in self._waiting.values():
            waiting.pop(who, None)

    def let_go(
        self, link: QueueLink | None, state: Congestion, stays: Callable[[AbstractSet[SlotId]], bool] | None = None
    ) -> None:
        """Calls back all that wait there for that reason; with `stays`, except those whose queues it is true of."""
        if not self._waiting:
            return
        waiting = self._waiting.get((link, state))
        if waiting is None:
            return
        going = {who: wait for who, wait in waiting.items() if not (stays and stays(wait.queue_ids))}
        for who in going:
            del waiting[who]
        if not waiting:
            del self._waiting[link, state]
        # The callbacks may add new waits at once.
        for_each("letting a publisher go on", going.values(), lambda wait: wait.callback())
