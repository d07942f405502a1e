"""Many sign-ins over HTTP at once."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from typing import Any, cast

import pytest

from services.common.authentication.claims import Credentials
from services.common.authentication.visit import NO_VISIT
from services.common.errors import BrokerError, Unavailable
from services.mgmt.rest import sign_in as module
from services.mgmt.rest.sign_in import SignIn
from services.rpc.store_pb2 import Record
from tests.support.signing_in import authenticator_of


class Store:
    """Lists when it may."""

    def __init__(self) -> None:
        self.asked = 0
        self.may = asyncio.Event()

    async def list_records(self, _kinds: Sequence[str]) -> list[Record]:
        self.asked += 1
        await self.may.wait()
        return []


async def _come(sign_in: SignIn, user: str) -> None:
    with contextlib.suppress(BrokerError):
        await sign_in(Credentials(user, "x"), "192.0.2.1", NO_VISIT)


async def test_a_crowd_has_users_listed_once() -> None:
    """Sign-ins that come while users are listed wait for the next list, which has all changes, and share it."""
    store = Store()
    sign_in = SignIn(authenticator_of(), cast("Any", store))
    first = asyncio.ensure_future(_come(sign_in, "first"))
    await asyncio.sleep(0.01)
    crowd = [asyncio.ensure_future(_come(sign_in, f"u{number}")) for number in range(8)]
    await asyncio.sleep(0.01)
    assert store.asked == 1
    store.may.set()
    await asyncio.gather(first, *crowd)
    assert store.asked == 2


async def test_a_store_that_hangs_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits for it as long as a call may take, and who waited is told what for."""
    monkeypatch.setattr(module, "_PATIENCE", 0.01)
    sign_in = SignIn(authenticator_of(), cast("Any", Store()))
    with pytest.raises(Unavailable, match="the store does not answer"):
        await sign_in(Credentials("ann", "x"), "192.0.2.1", NO_VISIT)
