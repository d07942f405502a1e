"""What is said again of deliveries to the next owner of their queue: the former one may not have carried it out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final, TypeAlias

from services.common.clients.link_frame import Settlement
from services.common.topology.slots import SlotId
from services.rpc import queue_pb2 as pb

FINAL: Final = (pb.ACCEPT, pb.REJECT)
_TRIED: Final = (pb.RELEASE, pb.TRIED)

Delivery: TypeAlias = tuple[SlotId, int]
"""A queue, and the uid of a message: other queues may have the same message."""


def said_again(
    settlements: Iterable[Settlement], held: Iterable[Delivery], own: int = 0, *, lost: bool = False
) -> list[Settlement]:
    """Of what was said, in order, to a former owner, what the next one has to hear. What is in `held` more than `own`
    times somebody here has, or more of it is known.

    What gives back is left out: if it was carried out, another consumer may hold the message; if not, the message is
    requeued all the same, since no client claims it. With annotations it is said, as the last word on its message. It
    is no attempt then: that may have been counted. Without it is said, as TRIED, if the owner was `lost` with what it
    knew: the message may be published again, as one that nobody has had. What came back since its consumer was gone is
    not.
    """
    said = [
        each
        for each in settlements
        if each.outcome in FINAL or each.change.annotations or (lost and each.outcome in _TRIED)
    ]
    wanted = {delivery for each in said if each.outcome not in FINAL for delivery in _deliveries(each)}
    known = more_than(own, wanted, held)
    again: list[Settlement] = []
    for each in reversed(said):
        if each.outcome in FINAL:
            again.append(each)
        elif uids := [uid for uid in each.uids if (each.queue_id, uid) not in known]:
            again.append(each._replace(outcome=pb.RETURN if each.change.annotations else pb.TRIED, uids=uids))
        if wanted:
            known.update(_deliveries(each))
    return again[::-1]


def more_than(times: int, wanted: set[Delivery], held: Iterable[Delivery]) -> set[Delivery]:
    """Those of `wanted` that are in `held` more often."""
    found = Counter(delivery for delivery in held if delivery in wanted) if wanted else {}
    return {delivery for delivery, count in found.items() if count > times}


def _deliveries(said: Settlement) -> Iterable[Delivery]:
    return ((said.queue_id, uid) for uid in said.uids)
