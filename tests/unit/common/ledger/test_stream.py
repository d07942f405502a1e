"""The stream of the record, where NATS has less room than it is to have."""

from __future__ import annotations

from typing import Any

import pytest
from nats.js.api import StreamConfig, StreamInfo, StreamState
from nats.js.errors import APIError

from services.common.bus.nats_link import Away
from services.common.config import Settings
from services.common.ledger import stream

_MIB = 1 << 20


class Context:
    """JetStream with so much room."""

    def __init__(self, room: int) -> None:
        self._room = room
        self.made: list[int | None] = []

    async def add_stream(self, config: StreamConfig) -> None:
        assert config.max_bytes
        if config.max_bytes > self._room:
            raise APIError(code=500, err_code=10047, description="insufficient storage resources available")
        self.made.append(config.max_bytes)

    update_stream = add_stream


@pytest.mark.parametrize("put", [stream.ensure, stream.configure])
async def test_a_smaller_stream(put: Any) -> None:
    """Refused for want of room, the stream is as large as NATS takes it, in steps of four."""
    settings = Settings(ledger_stream_bytes=1024 * _MIB)
    for room, size in ((2048, 1024), (48, 16), (1, 1)):
        context = Context(room * _MIB)
        await put(context, settings)
        assert context.made == [size * _MIB]


async def test_no_room_at_all() -> None:
    """Where there is none for the smallest either, what is raised says what to do."""
    with pytest.raises(Away, match="give it a larger disk"):
        await stream.ensure(Context(0), Settings())  # type: ignore[arg-type]


class Slow:
    """JetStream that answers what it is asked of a stream at once, and takes what it is told `late` questions later."""

    def __init__(self, late: int) -> None:
        self._late = late
        self._told = self._asked = 0

    async def publish(self, _subject: str, _payload: bytes) -> None:
        self._told += 1
        raise TimeoutError

    async def stream_info(self, _name: str) -> StreamInfo:
        self._asked += bool(self._told)
        taken = self._told if self._asked > self._late else 0
        return StreamInfo(config=StreamConfig(), state=StreamState(0, 0, 0, last_seq=7 + taken, consumer_count=1))


@pytest.mark.parametrize(("late", "takes"), [(0, True), (2, True), (5, True), (1000, False)])
async def test_a_slow_stream_is_no_broken_one(monkeypatch: pytest.MonkeyPatch, late: int, takes: bool) -> None:
    """One that takes what it was told much later than it answers is not renewed; one that never does, is."""
    monkeypatch.setattr(stream, "_LOOK_SECONDS", 0)
    assert await stream.takes(Slow(late)) is takes  # type: ignore[arg-type]
