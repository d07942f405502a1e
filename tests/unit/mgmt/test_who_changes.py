"""The user for whom mgmt makes a change, and a change that ends halfway."""

from __future__ import annotations

import asyncio
import urllib.error
import urllib.request
from pathlib import Path
from unittest.mock import AsyncMock

import pytest

from services.common.audit.acting import act_for
from services.common.clients.mgmt import MgmtClient
from services.common.config import Settings
from services.common.errors import NotFound, Unavailable
from services.mgmt.leaving import delete_user
from services.mgmt.service import Service
from services.rpc import mgmt_pb2 as pb
from tests.support.fake_store import FakeStore
from tests.unit.mgmt.test_providers import audited

WHO = "anna at the command line"


async def test_changes_are_told_with_their_user(store: FakeStore, client: MgmtClient) -> None:
    """Of users, their tags, and all that they may do."""
    act_for(WHO)
    await client.put_user("bob", "secret")
    store.actors.clear()
    await client.set_tags("bob", ["monitoring"])
    await client.change_access(put_permission=pb.Permission(user="bob", configure="", write="", read=".*"))
    await client.change_access(put_group=pb.Group(name="clerks", members=["bob"]))
    await client.change_access(put_acl=pb.Acl(text="CONFIG DEFAULTDEFER=TRUE"))
    await client.delete_user("bob")
    assert set(store.actors) == {WHO}


async def test_a_user_goes_after_what_it_may_do() -> None:
    """If the store goes away in between, a new user of that name gets nothing of the former; a retry works."""
    users, grants = AsyncMock(), AsyncMock()
    users.delete.side_effect = Unavailable("the store is away")
    with pytest.raises(Unavailable):
        await delete_user(users, grants, "bob")
    grants.forget_user.assert_awaited_once_with("bob")
    users.check.side_effect = NotFound("no user 'bob'")
    grants.forget_user.reset_mock()
    with pytest.raises(NotFound):
        await delete_user(users, grants, "bob")
    grants.forget_user.assert_not_awaited()


async def test_addresses_claimed_over_http(settings: Settings, store: FakeStore, tmp_path: Path) -> None:
    """Is not believed: an address is that of the socket."""
    service = Service(settings)
    await service.start()
    request = urllib.request.Request(f"http://127.0.0.1:{service.http_port}/api/ports")
    request.add_header("Authorization", "Basic Z3Vlc3Q6d3Jvbmc=")  # guest:wrong
    request.add_header("X-Forwarded-For", "10.1.2.3")
    with pytest.raises(urllib.error.HTTPError):
        await asyncio.to_thread(urllib.request.urlopen, request, None, 10)
    await service.stop()
    [refused] = [line for line in audited(tmp_path) if line["event"] == "refused"]
    assert refused["peer"].rpartition(":")[0] == "127.0.0.1"
