"""Why publishers wait, and who waits: by what it is for, so that news of it are no work for those who wait for more."""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from services.common.containment import for_each

if TYPE_CHECKING:
    from services.common.clients.queue_link import QueueLink


class Congestion(enum.Enum):
    """Why a publisher should wait."""

    FULL = "wait until what is under way has been taken"
    BLOCKED = "wait until consumers have made room: a queue has more than its share of memory"


@dataclass(slots=True)
class Pressure:
    """What `publish` says when a publisher should wait; `link` is where, None for queues without an owner.

    `queue_ids` are those that it published to there, some of which are full.
    """

    state: Congestion
    link: QueueLink | None
    queue_ids: Sequence[int] = ()


class _Wait(NamedTuple):
    queue_ids: Sequence[int]
    callback: Callable[[], None]


class Held:
    """The publishers that were told to wait. Those who wait for the same go on in their order."""

    def __init__(self) -> None:
        self._waiting: dict[tuple[QueueLink | None, Congestion], dict[object, _Wait]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._waiting.values()))

    def add(self, pressure: Pressure, who: object, callback: Callable[[], None]) -> None:
        """Calls back once, unless `who` is forgotten before; it waits once at most for the same."""
        waiting = self._waiting.setdefault((pressure.link, pressure.state), {})
        waiting[who] = _Wait(pressure.queue_ids, callback)

    def forget(self, who: object) -> None:
        """It is gone, however long the others wait."""
        for waiting in self._waiting.values():
            waiting.pop(who, None)

    def let_go(
        self, link: QueueLink | None, state: Congestion, stays: Callable[[Sequence[int]], bool] | None = None
    ) -> None:
        """All who wait there for that; with `stays`, but for those of whose queues it says so."""
        waiting = self._waiting.get((link, state))
        if waiting is None:
            return
        going = {who: wait for who, wait in waiting.items() if not (stays and stays(wait.queue_ids))}
        for who in going:
            del waiting[who]
        if not waiting:
            del self._waiting[link, state]
        # They may have to wait again at once.
        for_each("letting a publisher go on", going.values(), lambda wait: wait.callback())
