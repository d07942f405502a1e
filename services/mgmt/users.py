"""The users of the broker: mgmt is their only writer, the store keeps them, gateways follow them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import structlog

from services.common.clients.store import StoreClient
from services.common.errors import NotFound, SyntaxFault
from services.common.users import RECORD_KIND, User, hash_password
from services.mgmt.first_user import GUEST, FirstUser
from services.rpc.store_pb2 import Record

log = structlog.get_logger()

_LONGEST_NAME = 255  # bytes: a short string of AMQP, as in the user-id property


class Users:
    """User records in the store; every call raises Unavailable when the store is away for too long."""

    def __init__(self, store: StoreClient) -> None:
        self._store = store

    async def seed(self, first: FirstUser = GUEST) -> None:
        """Makes the first user when there is none at all."""
        if not await self.all():
            user = User(name=first.name, password_hash="", tags=("administrator",), loopback_only=first.loopback_only)
            await self._put(user, first.password)
            log.info("first user made", name=first.name, loopback_only=first.loopback_only)

    async def put(self, name: str, password: str, tags: Iterable[str], *, loopback_only: bool) -> None:
        """Creates or replaces a user; raises SyntaxFault for a name or password that no client could send."""
        if not 0 < len(name.encode()) <= _LONGEST_NAME:
            raise SyntaxFault(f"a user's name has 1 to {_LONGEST_NAME} bytes")
        if not password:
            raise SyntaxFault("a user needs a password")
        await self._put(User(name=name, password_hash="", tags=tuple(tags), loopback_only=loopback_only), password)

    async def delete(self, name: str) -> None:
        """Raises NotFound when there is none of that name."""
        if all(user.name != name for user in await self.all()):
            raise NotFound(f"no user '{name}'")
        await self._store.put_records(deletes=[Record(kind=RECORD_KIND, key=name)])

    async def all(self) -> list[User]:
        """Every user, by name."""
        users = [User.from_json(record.value) for record in await self._store.list_records([RECORD_KIND])]
        return sorted(users, key=lambda user: user.name)

    async def _put(self, user: User, password: str) -> None:
        hashed = await asyncio.to_thread(hash_password, password)
        value = user.model_copy(update={"password_hash": hashed}).to_json()
        await self._store.put_records([Record(kind=RECORD_KIND, key=user.name, value=value)])
