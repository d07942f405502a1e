"""Which messages wait in parcels, and how they leave them: of a queue whose consumers settle nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from services.queue.machine.order.parcel import Parcel

if TYPE_CHECKING:
    from services.queue.machine.arrival import Arrival
    from services.queue.machine.entries import Entries

_FEWEST: Final = 4  # messages: fewer are entries in less time than they are sliced, and take no more memory


def keep(its: Entries, arrival: Arrival, first: int, end: int) -> bool:
    """Has messages `first` to `end - 1` wait so, if they can, and are some."""
    if end - first < _FEWEST or not its.ready.takes_parcels:
        return False
    if not _are_plain(arrival, durable=its.options.durable) or not _is_plain(its):
        return False
    if its.record.on:
        its.record.enqueued(arrival.span(first, end))
    parcel = Parcel(arrival, first, end, its.position)
    its.position += len(parcel)
    sizes = parcel.sizes(len(parcel))
    its.context.account.hold_parcel(len(parcel), sizes.kept, its.holding)
    its.ready.wait(parcel, sizes.bodies)
    if its.on_more:
        its.on_more(its.options.queue_id)
    return True


def gone(its: Entries, parcel: Parcel, end: int) -> None:
    """Those before an index were delivered, and are done with."""
    count = end - parcel.first
    sizes = parcel.sizes(end)
    its.ready.taken_from(parcel, end, sizes.bodies)
    its.context.account.let_go_parcel(count, sizes.kept, its.holding)
    if its.on_gone is not None:  # features know of none: nobody has had any of them
        its.on_gone()


def ended(its: Entries) -> list[int]:
    """The queue is about to end: they are no more, and nobody looks at any of them. Gives their uids."""
    uids: list[int] = []
    for parcel in its.ready.take_parcels():
        its.context.account.let_go_parcel(len(parcel), parcel.sizes(len(parcel.bodies)).kept, its.holding)
        uids += parcel.uids[parcel.first :]
    return uids


def _are_plain(arrival: Arrival, *, durable: bool) -> bool:
    if arrival.place is not None or arrival.expires is not None or arrival.some_are_shared:
        return False
    return not durable or not arrival.some_are_persistent


def _is_plain(its: Entries) -> bool:
    return its.aside is None and its.ring is None and not its.options.limited and not its.expiring.some
