"""Whether NATS is there."""

from __future__ import annotations

from pathlib import Path

from services.mgmt.ledger.probe import bus_trouble
from tests.support.nats_server import NatsServer


async def test_bus_trouble(tmp_path: Path) -> None:
    """A server that answers is no trouble; one that is held up, or gone, is one at once."""
    server = NatsServer(tmp_path)
    await server.start()
    try:
        assert await bus_trouble(server.address) == ""
        server.pause()
        assert (await bus_trouble(server.address)).startswith("NATS is away (no answer within 2 s)")
        server.resume()
    finally:
        server.kill()
    assert (await bus_trouble(server.address)).startswith("NATS is away (")
    assert await bus_trouble("") == ""
