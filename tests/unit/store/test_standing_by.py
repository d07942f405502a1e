"""A store process until it may write, and how it is seen."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from structlog.testing import capture_logs

from services.common.errors import InternalError, Unavailable
from services.rpc.store_pb2 import KeepAliveReply, KeepAliveRequest
from services.store import standing_by
from services.store.provider import Unreachable
from services.store.standing_by import Presence, stand_by


class Scripted:
    """Says who writes, one answer after the other."""

    def __init__(self, *answers: str | InternalError) -> None:
        self._answers: Iterator[str | InternalError] = iter(answers)

    async def occupied(self) -> str:
        answer = next(self._answers)
        if isinstance(answer, InternalError):
            raise answer
        return answer


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(standing_by, "_LOOK_SECONDS", 0.0)


async def run(*answers: str | InternalError) -> tuple[int, list[str]]:
    """How often it was told that it stands by, and what was logged."""
    told = 0

    async def tell() -> None:
        nonlocal told
        told += 1

    with capture_logs() as logs:
        await stand_by(Scripted(*answers), tell)  # type: ignore[arg-type]
    return told, [line["event"] for line in logs]


async def test_no_process_writes() -> None:
    """Then there is nothing to wait for, nor to say."""
    assert await run("") == (0, [])


async def test_a_process_writes() -> None:
    """It stands by until that has ended, and says both, once."""
    assert await run("a", "a", "b", "") == (1, ["store stands by", "store takes over"])


async def test_it_cannot_be_asked() -> None:
    """At first that ends the start; later it is logged once, and no process is taken for dead for it."""
    away = InternalError("cannot use it")
    with pytest.raises(InternalError):
        await run(away)
    told, said = await run("a", away, away, "a", away, "")
    fails, again = "cannot ask who writes, nor take over", "it is known again who writes"
    assert (told, said) == (1, ["store stands by", fails, again, fails, again, "store takes over"])


async def test_it_starts_at_once_with_what_keeps_the_data(monkeypatch: pytest.MonkeyPatch) -> None:
    """It waits for that, and says so once, for it would count as a sick process if it ended; but not for ever."""
    absent = Unreachable("nobody answers")
    assert await run(absent, absent, "") == (0, ["waits for what keeps the data"])
    monkeypatch.setattr(standing_by, "_STARTING_SECONDS", 0.0)
    with pytest.raises(Unreachable):
        await run(absent, "")


async def test_presence() -> None:
    """It is a member as long as the writer answers, and asks on where none does; the lease is the writer's."""
    asked: list[KeepAliveRequest] = []

    async def ask(request: KeepAliveRequest) -> KeepAliveReply:
        asked.append(request)
        if len(asked) == 1:
            raise Unavailable("away")
        return KeepAliveReply()

    presence = Presence("store-1-a", "unix:a", 10)
    for writes in (False, True):
        asked.clear()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(presence.keep(ask, writes=writes), 0.1)
        assert len(asked) > 1
        assert {(each.member, each.role, each.address, *each.acquire) for each in asked} == {
            ("store-1-a", "store", "unix:a", *(["store"] if writes else []))
        }
