"""How partitions are shared out among queue processes: fairly, and staying where they are."""

from __future__ import annotations

from collections.abc import Set as AbstractSet


def plan(
    partitions: int, mine: AbstractSet[int], taken: AbstractSet[int], members: int, moves: int
) -> tuple[list[int], list[int]]:
    """What a process should acquire and what it should let go of, `moves` at most; `taken` are held by anyone.

    A fair share is rounded up. Free partitions are taken up to it at once, nobody serves them meanwhile.
    """
    share = -(-partitions // max(members, 1))
    if len(mine) > share:
        return [], sorted(mine)[-min(moves, len(mine) - share) :]
    free = [number for number in range(partitions) if number not in taken]
    return free[: share - len(mine)], []
