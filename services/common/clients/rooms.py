"""How much memory the bodies that a process has sent may take, on all its streams to queue processes together."""

from __future__ import annotations

from typing import NamedTuple, Self

from services.common.budget import Budget
from services.common.clients.kept_bodies import room_for_bodies
from services.common.clients.shared_bodies import room_to_share


class Rooms(NamedTuple):
    """`kept` by this process for itself; `shared` with queue processes, which read them there."""

    kept: Budget
    shared: Budget

    @classmethod
    def of_process(cls) -> Self:
        """By the memory that there is."""
        return cls(room_for_bodies(), room_to_share())
