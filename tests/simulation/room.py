"""Makes room in queues whose publishers are held back, once everything is healed: they have to go on then.

Clients that publish and consume on one connection may wait for each other, as documents say: nothing of a connection
that is held back is heard.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from tests.simulation.choices import HELD_BACK
from tests.simulation.client import Client
from tests.simulation.plan import Plan, Step
from tests.simulation.steps import STEPS

_LATER = 10.0  # seconds after healing, in which nobody need go on
_AGAIN = 2.0  # seconds until it looks for queues that were not there


def rooms(plan: Plan) -> dict[str, list[str]]:
    """Virtual hosts with such queues, and which these are."""
    found: dict[str, list[str]] = {}
    for step in plan.topology:
        if step["do"] == "queue" and step.get("arguments", {}).items() >= HELD_BACK.items():
            found.setdefault(step["host"], []).append(step["queue"])
    return found


async def make_room(client: Client, queues: Sequence[str]) -> None:
    """Takes all that they have, until it is cancelled."""
    steps: list[Step] = [
        {"do": "consume", "channel": queue, "queue": queue, "tag": f"room-{queue}"} for queue in queues
    ]
    await asyncio.sleep(_LATER)
    while True:
        await client.run(steps, STEPS)
        await asyncio.sleep(_AGAIN)
