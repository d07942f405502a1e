"""Who asks over HTTP."""

from __future__ import annotations

import base64
import contextlib
from collections.abc import Sequence
from typing import Any

import pytest
from fastapi import HTTPException, Request

from services.common.authentication.authenticator import Authenticator
from services.common.clients.access import Access
from services.common.clients.mgmt import MgmtClient
from services.common.users import User, hash_password
from services.mgmt.access.guard import Guard
from services.mgmt.access.operations import CONFIGURE
from services.mgmt.http.doors import SIGNED_IN
from services.mgmt.rest.basic import Doors
from services.mgmt.rest.sign_in import SignIn
from services.rpc.store_pb2 import Record
from tests.support.rest import Get
from tests.support.signing_in import Records, authenticator_of, user_record

GUEST = User(name="guest", password_hash=hash_password("guest"), tags=("administrator",), loopback_only=True)


def asked_by(client: tuple[str, int] | None) -> Request:
    """By guest, with the right password; uvicorn gives no `client` where the socket was reset meanwhile."""
    authorization = b"Basic " + base64.b64encode(b"guest:guest")
    return Request({"type": "http", "method": "GET", "client": client, "headers": [(b"authorization", authorization)]})


async def test_a_user_of_this_machine() -> None:
    """Comes in from there, and from nowhere else: not from where nobody can tell any more."""
    store: Any = Records(user_record(GUEST))
    access = Access(["permissions"])
    access._known.set()
    basic = Doors(SignIn(authenticator_of(), store), Guard(access)).to(CONFIGURE)
    assert (await basic(asked_by(("127.0.0.1", 1)))).name == "guest"
    for elsewhere in (("192.0.2.7", 1), None):
        with pytest.raises(HTTPException, match="can only connect from this machine"):
            await basic(asked_by(elsewhere))


async def test_who_has_signed_in_is_told() -> None:
    """To whoever chooses among connections: it is no stranger any more. Who was refused still is."""
    store: Any = Records(user_record(GUEST))
    access, told = Access(["permissions"]), list[str]()
    access._known.set()
    basic = Doors(SignIn(authenticator_of(), store), Guard(access)).to(CONFIGURE)
    for peer in ("192.0.2.7", "127.0.0.1"):
        request = asked_by((peer, 1))
        request.scope[SIGNED_IN] = told.append
        with contextlib.suppress(HTTPException):
            await basic(request)
    assert told == ["internal\0guest"]


async def test_users_are_read_when_they_have_changed(
    get: Get, client: MgmtClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not at each request, which would be slow where there are thousands; who was changed is known at the next."""
    read, times = Authenticator.read, []

    def counted(self: Authenticator, records: Sequence[Record]) -> None:
        times.append(len(records))
        read(self, records)

    monkeypatch.setattr(Authenticator, "read", counted)
    assert [(await get("/api/whoami"))[0] for _ in range(3)] == [200] * 3
    assert len(times) == 1
    await client.change_user("guest", password="another")
    assert (await get("/api/whoami"))[0] == 401
    assert (await get("/api/whoami", "guest:another"))[0] == 200
