"""Messages that queue processes may have died of, so that no third one does: they take more memory than there is.

The promise: a message is refused (its publisher hears a nack, and the log names it) when it is larger than any frame of
ordinary traffic, and two processes, one after the other, broke their streams while it was under way, the second time as
the only such message of this gateway. A smaller message is never refused for that, however many owners are killed near
it. Nor is one that an owner turned away, handed over or had when it left in good order, or when the same process came
back.

To find the message, large ones are sent one at a time as soon as one is suspected. Small ones go on beside them.
"""

from __future__ import annotations

from collections.abc import Iterable

import structlog

from services.common.clients.outbound import Attempt
from services.common.message.weight import FRAME_BYTES
from services.rpc import queue_pb2 as pb

log = structlog.get_logger()

LARGE = FRAME_BYTES

_TOO_OFTEN = 2


class Suspects:
    """Large attempts under way, and the owners that each was lost with. Small attempts must not be passed in."""

    def __init__(self) -> None:
        self._under_way: dict[int, Attempt] = {}  # by id(), which is unique while the attempt is in here

    def sent(self, attempt: Attempt) -> None:
        """It is under way now."""
        self._under_way[id(attempt)] = attempt

    def done(self, attempt: Attempt) -> bool:
        """An owner took it and lives; gives whether it was suspected, so that others may be sent now."""
        return self._under_way.pop(id(attempt), None) is not None and bool(attempt.lost_with)

    def lost(self, attempts: Iterable[Attempt], member: str, *, died: bool) -> None:
        """These were under way to a process whose stream broke; `died`: for no known reason."""
        for attempt in attempts:
            if self._under_way.pop(id(attempt), None) and died:
                attempt.lost_with |= {member}

    def must_wait(self, attempt: Attempt, waiting: Iterable[Attempt]) -> bool:
        """Whether it may be sent only when no other large one is under way; `waiting` are those not sent yet."""
        return bool(self._under_way) and any(each.lost_with for each in (attempt, *self._under_way.values(), *waiting))

    def refuses(self, attempt: Attempt, member: str) -> bool:
        """Whether it must not be sent to `member`, nor elsewhere; if so it has been refused here."""
        if not attempt.lost_with:
            return False
        attempt.lost_with -= {member}  # it is alive, so it did not die of this
        if len(attempt.lost_with) < _TOO_OFTEN:
            return False
        log.error(
            "message refused: two queue processes were lost with it",
            exchange=attempt.messages.facts[0].exchange,
            routing_key=attempt.messages.facts[0].routing_key,
            uids=list(attempt.messages.uids),
            bytes=attempt.size,
            processes=sorted(attempt.lost_with),
            do="see that queue processes have memory for it, or set HOPLINE_MAX_MESSAGE_SIZE lower",
        )
        attempt.refuse(pb.OTHER)
        return True
