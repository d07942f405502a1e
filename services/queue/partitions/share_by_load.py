"""The placement `load`: all members have equally much to do, so the busiest partitions are apart.

A partition's weight is its message rate, and a little for being there, so that idle ones are shared too. Moving costs
clients a pause: a nearly even load stays as it is, and only the busiest member gives, to the least busy one.
"""

from __future__ import annotations

from services.queue.partitions.share import View

# Of the mean of all members: differences below it are not worth a move.
_EVEN_ENOUGH = 0.1
# Of the mean of all partitions: what an idle one weighs.
_IDLE = 0.1


class ShareByLoad:
    """The placement `load`."""

    def plan(self, view: View, me: str, moves: int) -> tuple[list[int], list[int]]:
        """As Placement says."""
        return plan(view, me, moves)


def plan(view: View, me: str, moves: int) -> tuple[list[int], list[int]]:
    """What `me` should acquire and what it should let go of, `moves` at most. Pins win over everything."""
    weights = _weights(view)
    away = sorted(
        number for number, owner in view.owners.items() if owner == me and view.pinned(number) not in {None, me}
    )
    assigned = _assigned(view, weights)
    acquire = [number for number, member in assigned.items() if member == me]
    if len(away) >= moves or any(view.pinned(number) is None for number in assigned):
        return acquire, away[:moves]  # free partitions have to find their owners first
    return acquire, away + _surplus(view, weights, me, moves - len(away))


def _weights(view: View) -> dict[int, float]:
    total = sum(view.loads.get(number, 0.0) for number in range(view.partitions))
    idle = total / view.partitions * _IDLE or 1.0
    return {number: view.loads.get(number, 0.0) + idle for number in range(view.partitions)}


def _assigned(view: View, weights: dict[int, float]) -> dict[int, str]:
    """The members that shall have the free partitions: the heaviest first, each to the least busy member by then."""
    burdens = _burdens(view, weights, [*view.members, *view.joining])
    free = [number for number in range(view.partitions) if number not in view.owners]
    assigned: dict[int, str] = {}
    for number in sorted(free, key=lambda number: (view.pinned(number) is None, -weights[number], number)):
        member = view.pinned(number) or _lightest(burdens)
        burdens[member] += weights[number]
        assigned[number] = member
    return assigned


def _burdens(view: View, weights: dict[int, float], members: list[str]) -> dict[str, float]:
    """The load of each member; a pinned partition counts where it is pinned."""
    burdens = dict.fromkeys(sorted(members), 0.0)
    for number, owner in view.owners.items():
        member = view.pinned(number) or owner
        if member in burdens:
            burdens[member] += weights[number]
    return burdens


def _surplus(view: View, weights: dict[int, float], me: str, moves: int) -> list[int]:
    """The partitions that `me`, if it is the busiest member, gives to the least busy one: those that even out most.

    The receiver never ends with more load than the giver had, so what was given does not come back.
    """
    burdens = _burdens(view, weights, list(view.members))
    giver, taker = max(burdens, key=lambda member: burdens[member]), _lightest(burdens)
    if giver != me:
        return []
    enough = sum(burdens.values()) / len(burdens) * _EVEN_ENOUGH if any(view.loads.values()) else 0.0
    mine = [number for number, owner in view.owners.items() if owner == me and view.pinned(number) is None]
    given: list[int] = []
    while mine and len(given) < moves:
        most, least = burdens[giver], burdens[taker]
        number = min(mine, key=lambda number: (max(most - weights[number], least + weights[number]), number))
        if max(most - weights[number], least + weights[number]) >= most - enough:
            break
        burdens[giver], burdens[taker] = most - weights[number], least + weights[number]
        mine.remove(number)
        given.append(number)
    return given


def _lightest(burdens: dict[str, float]) -> str:
    return min(burdens, key=lambda member: burdens[member])
