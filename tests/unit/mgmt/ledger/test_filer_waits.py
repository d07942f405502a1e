"""What the filer says, and offers, while what it needs does not answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from services.common.errors import Unavailable
from tests.support.filing_office import Office, opened, until


@pytest.fixture
async def office(tmp_path: Path) -> AsyncIterator[Office]:
    async with opened(tmp_path) as office:
        yield office


async def test_nats_does_not_answer(office: Office) -> None:
    """A server that is there and says nothing is told of within seconds, also when nothing is to be filed."""
    filer = office.join()
    office.tell("a", 7)
    await until(office.uids)
    office.server.pause()
    try:
        await until(lambda: filer.trouble, 10)
        assert filer.trouble.startswith("NATS is away (no answer within 2 s)")
    finally:
        office.server.resume()
    office.tell("a", 9)
    await until(lambda: office.uids() == [7, 9] and not filer.trouble)


async def test_the_store_does_not_answer(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that are not filed stay in sight, and why they are not is said, until they have come again from the bus."""
    office.settings = office.settings.model_copy(update={"ledger_seconds": 3.0, "lease_ttl_ms": 500})
    filer = office.join()
    office.tell("a", 7)
    await until(lambda: "stages" in filer.pending())
    with monkeypatch.context() as patched:
        patched.setattr(office._client, "keep_alive", _silent)
        await until(lambda: not filer._lease.holds())
        for _ in range(10):
            assert filer.trouble.startswith("the store does not answer")
            assert "stages" in filer.pending()
            await asyncio.sleep(0.1)
    async with asyncio.timeout(20):
        while not office.uids():
            assert filer.trouble or "stages" in filer.pending()
            await asyncio.sleep(0.01)
    await until(lambda: not filer.trouble)
    assert office.uids() == [7]


async def _silent(_request: object, timeout: float) -> None:  # noqa: ASYNC109 - as a gRPC deadline
    await asyncio.sleep(timeout)
    raise Unavailable("Deadline Exceeded")
