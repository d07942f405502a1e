"""A synchronous request of a client, and what came of it."""

from __future__ import annotations

from typing import Any, Final

from tests.simulation.channel import Channel
from tests.simulation.history import Asked
from tests.simulation.line import GoneError

FINAL: Final = frozenset({403, 404, 405, 406, 530})
"""Reply codes by which a client knows that nothing was done."""


async def ask(channel: Channel, what: str, arguments: dict[str, Any], request: Any, behind: bytes = b"") -> Asked:
    """A synchronous request, written down with what came of it; raises GoneError."""
    history = channel.wire.history
    asked = Asked(what, channel.wire.connected.host, arguments, channel.opened, history.tick(), history.clock())
    history.asked.append(asked)
    try:
        answer = await channel.call(request, behind)
    except GoneError as gone:
        asked.answered, asked.code = history.tick(), gone.code
        # A client that is told that the broker goes away does not know what became of its request.
        asked.outcome = "closed" if gone.code in FINAL else "lost"
        raise
    asked.answered, asked.outcome = history.tick(), "ok"
    asked.result = answer
    return asked
