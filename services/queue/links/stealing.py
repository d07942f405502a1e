"""Consumers that take the place of others, wherever those are: links of AMQP 1.0 attached again (part 2, 2.6.1).

Thefts are numbered, and gateways say their consumers' numbers to the next owner: whoever was away when its consumer was
stolen, or was not told before the owner died, hears of it when it comes back.
"""

from __future__ import annotations

from typing import Final

from services.queue.machine.consumers import Consumer
from services.queue.machine.queue import Queue
from services.rpc import queue_pb2 as pb

_OF_A_TERM: Final = 31  # bits that count the thefts of one term
_FIRST: Final = 1 << 63  # above the milliseconds of a clock, which former releases gave


def steal(queue: Queue, thief: Consumer, attach: pb.AttachConsumer, now: int, epoch: int) -> None:
    """A newcomer is alone from now on; one that comes again ends those with lower numbers, which may be itself.

    Numbers begin with the partition's epoch: an owner that has not heard of the last theft gives a higher one, too,
    whatever its clock says. They end without a dispatch, which comes when all that attach together are here.
    """
    consumers = queue.consumers
    thief.theft = (attach.theft if attach.again else 0) or max(_first_of(epoch), consumers.latest_theft + 1)
    consumers.latest_theft = max(consumers.latest_theft, thief.theft)
    for former in consumers:
        if former.theft < consumers.latest_theft and (former.theft or not attach.again):
            consumers.remove(former)
            queue.use.detached(now)
            former.link.ended(former, pb.STOLEN)


def _first_of(epoch: int) -> int:
    return _FIRST | epoch << _OF_A_TERM
