"""What a client sends by mistake behind a request: it ends the channel, or the connection, and the request is answered.

A connection waits for its requests for two seconds; then its client is told what was wrong all the same.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from pamqp import commands

from tests.simulation.asking import ask
from tests.simulation.client import Client
from tests.simulation.history import History
from tests.simulation.line import GoneError
from tests.simulation.plan import Step
from tests.support.amqp_playbook import content, written

_PATIENCE: Final = 1.9


class Mistake(NamedTuple):
    """Bytes for a channel, and the reply code that they cause; `seconds` after which other answers may be missing."""

    behind: Callable[[int], bytes]
    code: int
    seconds: float


_MISTAKES: Final[Mapping[str, Mistake]] = {
    "channel": Mistake(lambda number: content(number, b"x", expiration="soon"), 406, float("inf")),
    "connection": Mistake(lambda number: written(number, commands.Basic.Deliver("", 1, False, "", "")), 503, _PATIENCE),
    "frame": Mistake(lambda number: b"\x09" + number.to_bytes(2) + b"\0\0\0\0\xce", 501, _PATIENCE),
}


async def mistake(client: Client, step: Step) -> None:
    """Takes a message, and sends something behind that which ends the channel, or the connection."""
    channel, its = await client.channel(step), _MISTAKES[step["ends"]]
    channel.getting = step["queue"], True
    loop = asyncio.get_running_loop()
    begun = loop.time()
    try:
        request, behind = commands.Basic.Get(0, step["queue"], True), its.behind(channel.number)
        asked = await ask(channel, "get", {**step, "no_ack": True}, request, behind)
    except GoneError as gone:
        _judge(its, gone, loop.time() - begun, client.history)
        raise
    asked.result = asked.result[1].id if isinstance(asked.result, tuple) else None
    while not channel.dead:
        channel.wire.changed.clear()
        await channel.wire.changed.wait()


def _judge(mistake: Mistake, gone: GoneError, seconds: float, history: History) -> None:
    """The end came so long after the request, and no answer before it."""
    if gone.code == mistake.code and seconds < mistake.seconds:
        history.stuck.append(f"a request in front of a mistake was not answered before {gone} came")
