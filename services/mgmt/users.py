"""The users of the broker, and their keys: mgmt is the only writer, the store keeps them, gateways follow them."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterable, Mapping

import structlog

from services.common import scram
from services.common.clients.store import StoreClient
from services.common.errors import NotFound, PreconditionFailed, SyntaxFault
from services.common.users import RECORD_KIND, User, hash_password
from services.mgmt.first_user import GUEST, FirstUser
from services.rpc.store_pb2 import Record

log = structlog.get_logger()

_LONGEST_NAME = 255  # bytes: a short string of AMQP, as in the user-id property
_DISGUISE = "secret"
_DISGUISE_BYTES = 32


class Users:
    """User records in the store; every call raises Unavailable when the store is away for too long."""

    def __init__(self, store: StoreClient, mechanisms: Iterable[str] = scram.MECHANISMS) -> None:
        """Passwords get keys for those of `mechanisms` that are SCRAM."""
        self._store = store
        self._mechanisms = frozenset(mechanisms)
        self._changing = asyncio.Lock()

    async def seed(self, first: FirstUser = GUEST) -> None:
        """Makes the first user when there is none at all, and the secret that disguises who is none."""
        if not await self._store.list_records([scram.DISGUISE_KIND]):
            secret = Record(kind=scram.DISGUISE_KIND, key=_DISGUISE, value=secrets.token_bytes(_DISGUISE_BYTES))
            await self._store.put_records([secret])
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

    async def set_tags(self, name: str, tags: Iterable[str]) -> None:
        """In place of those that the user has. Raises NotFound when there is none of that name."""
        async with self._changing:
            user = (await self._one(name)).model_copy(update={"tags": tuple(tags)})
            await self._store.put_records([Record(kind=RECORD_KIND, key=name, value=user.to_json())])

    async def delete(self, name: str) -> None:
        """Raises NotFound when there is none of that name."""
        async with self._changing:
            await self._one(name)
            deletes = [Record(kind=kind, key=name) for kind in (RECORD_KIND, scram.RECORD_KIND)]
            await self._store.put_records(deletes=deletes)

    async def add_keys(self, name: str, password_hash: str, keys: Mapping[str, scram.Keys]) -> None:
        """For those mechanisms of which the user has none. Raises NotFound, and PreconditionFailed for another hash."""
        async with self._changing:
            user = await self._one(name)
            if user.password_hash != password_hash:
                raise PreconditionFailed(f"user '{name}' has another password by now")
            there = await self._keys_of(user)
            if keys.keys() - there.keys():
                together = scram.KeysOfUser(password_hash=password_hash, keys={**keys, **there})
                await self._store.put_records([Record(kind=scram.RECORD_KIND, key=name, value=together.to_json())])

    async def all(self) -> list[User]:
        """Every user, by name."""
        users = [User.from_json(record.value) for record in await self._store.list_records([RECORD_KIND])]
        return sorted(users, key=lambda user: user.name)

    async def _one(self, name: str) -> User:
        found = next((user for user in await self.all() if user.name == name), None)
        if found is None:
            raise NotFound(f"no user '{name}'")
        return found

    async def _keys_of(self, user: User) -> Mapping[str, scram.Keys]:
        records = await self._store.list_records([scram.RECORD_KIND])
        found = next((record for record in records if record.key == user.name), None)
        return scram.KeysOfUser.from_json(found.value).of(user) if found else {}

    async def _put(self, user: User, password: str) -> None:
        puts = await asyncio.to_thread(_records, user, password, self._mechanisms)
        async with self._changing:
            await self._store.put_records(puts)


def _records(user: User, password: str, mechanisms: Iterable[str]) -> list[Record]:
    """The user with that password, and the keys that go with it. Slow on purpose."""
    user = user.model_copy(update={"password_hash": hash_password(password)})
    keys = scram.KeysOfUser(password_hash=user.password_hash, keys=scram.make_keys(password, mechanisms))
    return [
        Record(kind=RECORD_KIND, key=user.name, value=user.to_json()),
        Record(kind=scram.RECORD_KIND, key=user.name, value=keys.to_json()),
    ]
