"""How partitions are shared out among queue processes: fairly, and staying where they are."""

from __future__ import annotations

from collections.abc import Set as AbstractSet


def plan(
    partitions: int, mine: AbstractSet[int], taken: AbstractSet[int], members: int, moves: int, joining: int = 0
) -> tuple[list[int], list[int]]:
    """What a process should acquire and what it should let go of, `moves` at most; `taken` are held by anyone.

    A fair share is rounded up. Free partitions are taken up to it at once, nobody serves them meanwhile; for members
    that are `joining` a share is left free, so that processes that start together need not move anything afterwards.
    """
    share = -(-partitions // max(members, 1))
    if len(mine) > share:
        return [], sorted(mine)[-min(moves, len(mine) - share) :]
    share = -(-partitions // max(members + joining, 1))
    free = [number for number in range(partitions) if number not in taken]
    return free[: max(share - len(mine), 0)], []
