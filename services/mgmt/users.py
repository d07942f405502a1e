"""The users of the broker, and their keys: mgmt is the only writer, the store keeps them, gateways follow them."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import structlog

from services.common import scram
from services.common.clients.overtaken import decided_again
from services.common.clients.store import Read, StoreClient
from services.common.credentials import Whose, kind_named
from services.common.errors import NotFound, PreconditionFailed, SyntaxFault
from services.common.first_user import GUEST, FirstUser
from services.common.sealing import Sealing
from services.common.users import RECORD_KIND, User, digest_of
from services.rpc.store_pb2 import Record

log = structlog.get_logger()

_LONGEST_NAME = 255  # bytes: a short string of AMQP, as in the user-id property
_DISGUISE = "secret"
_DISGUISE_BYTES = 32


@dataclass(frozen=True, slots=True)
class Kept:
    """How a password is kept: a plug-in of `credential_kinds`; `hashed` where what is given is that already."""

    kind: str = "argon2"
    hashed: bool = False


KEPT_USUALLY = Kept()


_NOTHING = Read([], [])


class Users:
    """User records in the store; every call raises Unavailable when the store is away for too long."""

    def __init__(
        self, store: StoreClient, mechanisms: Iterable[str] = scram.MECHANISMS, sealing: Sealing | None = None
    ) -> None:
        """Passwords get keys for those of `mechanisms` that are SCRAM; `sealing` is for those kept recoverably."""
        self._store = store
        self._sealing = sealing
        self._mechanisms = frozenset(mechanisms)
        self._changing = asyncio.Lock()

    @decided_again
    async def disguise(self) -> None:
        """Makes the secret that disguises names without a user, where there is none."""
        read = await self._store.read_records(scram.DISGUISE_KIND)
        if not read.records:
            secret = Record(kind=scram.DISGUISE_KIND, key=_DISGUISE, value=secrets.token_bytes(_DISGUISE_BYTES))
            await self._store.put_records([secret], unchanged=read.unchanged)

    async def seed(self, first: FirstUser = GUEST, beside: Read = _NOTHING) -> None:
        """Makes the first user when there is none at all, and at the same moment what is `beside` it.

        Raises Overtaken where what that rests on is another by now.
        """
        made = [] if await self.all() else await self._first(first)
        if made or beside.records:
            await self._store.put_records([*made, *beside.records], unchanged=beside.unchanged)
        if made:
            log.info("first user made", name=first.name, loopback_only=first.loopback_only)

    async def _first(self, first: FirstUser) -> list[Record]:
        user = User(name=first.name, password_hash="", tags=("administrator",), loopback_only=first.loopback_only)
        return _records(user, await self._secret(first.name, first.password, KEPT_USUALLY))

    async def put(
        self,
        name: str,
        password: str,
        tags: Iterable[str],
        *,
        loopback_only: bool,
        kept: Kept = KEPT_USUALLY,
        there: bool | None = None,
    ) -> None:
        """Creates or replaces a user; raises SyntaxFault for a name or password that no client could send.

        `there`: whether the user existed when access was checked. Raises NotFound, PreconditionFailed where that has
        changed since: a caller who may create users need not be allowed to replace one, nor the other way round.
        """
        if not 0 < len(name.encode()) <= _LONGEST_NAME:
            raise SyntaxFault(f"a user's name has 1 to {_LONGEST_NAME} bytes")
        secret = await self._secret(name, password, kept)
        user = User(name=name, password_hash="", tags=tuple(tags), loopback_only=loopback_only)
        await self._put(user, secret, there)

    @decided_again
    async def _put(self, user: User, secret: _Secret, there: bool | None) -> None:
        async with self._changing:
            read = _NOTHING if there is None else await self._store.read_records(RECORD_KIND)
            if there is not None:
                _check_there(read, user.name, there=there)
            await self._store.put_records(_records(user, secret), unchanged=read.unchanged)

    async def change(
        self,
        name: str,
        *,
        password: str | None = None,
        kept: Kept = KEPT_USUALLY,
        tags: Iterable[str] | None = None,
        loopback_only: bool | None = None,
    ) -> None:
        """What is not None; the rest stays. Raises NotFound, SyntaxFault as `put`.

        Raises PreconditionFailed where another caller changed the password while this one was hashed.
        """
        former = _one(await self._store.read_records(RECORD_KIND), name)
        secret = None if password is None else await self._secret(name, password, kept)
        told = {"tags": None if tags is None else tuple(tags), "loopback_only": loopback_only}
        changes = {field: value for field, value in told.items() if value is not None}
        await self._change(former, changes, secret)

    @decided_again
    async def _change(self, former: User, changes: Mapping[str, Any], secret: _Secret | None) -> None:
        async with self._changing:
            read = await self._store.read_records(RECORD_KIND)
            user = _one(read, former.name)
            if user.revision != former.revision:
                raise PreconditionFailed(f"user '{user.name}' was changed at the same time; try again")
            user = user.model_copy(update=changes)
            puts = _records(user, secret) if secret else [_record_of(user)]
            await self._store.put_records(puts, unchanged=read.unchanged)

    async def _secret(self, name: str, password: str, kept: Kept) -> _Secret:
        """Made before anything is looked at that others may change: it takes its time."""
        await asyncio.to_thread(_check_password, password, kept)
        return await asyncio.to_thread(_secret_of, password, kept, Whose(name, self._sealing), self._mechanisms)

    @decided_again
    async def set_tags(self, name: str, tags: Iterable[str]) -> None:
        """In place of those that the user has. Raises NotFound when there is none of that name."""
        async with self._changing:
            read = await self._store.read_records(RECORD_KIND)
            user = _one(read, name).model_copy(update={"tags": tuple(tags)})
            await self._store.put_records([_record_of(user)], unchanged=read.unchanged)

    async def check(self, name: str) -> None:
        """Raises NotFound when there is none of that name."""
        _one(await self._store.read_records(RECORD_KIND), name)

    @decided_again
    async def delete(self, name: str) -> None:
        """Raises NotFound when there is none of that name."""
        async with self._changing:
            read = await self._store.read_records(RECORD_KIND)
            _one(read, name)
            deletes = [Record(kind=kind, key=name) for kind in (RECORD_KIND, scram.RECORD_KIND)]
            await self._store.put_records(deletes=deletes, unchanged=read.unchanged)

    @decided_again
    async def add_keys(
        self, name: str, password_hash: str, keys: Mapping[str, scram.Keys], renewed_hash: str = ""
    ) -> None:
        """For those mechanisms of which the user has none, and a newer hash of the password, if any.

        Raises NotFound, and PreconditionFailed for another hash.
        """
        async with self._changing:
            read = await self._store.read_records(RECORD_KIND, scram.RECORD_KIND)
            user = _one(read, name)
            if user.password_hash != password_hash:
                raise PreconditionFailed(f"the password of user '{name}' was changed meanwhile")
            there = _keys_of(read, user)
            puts = []
            if renewed_hash:
                replaced = user.replaced or digest_of(user.password_hash)
                user = user.model_copy(update={"password_hash": renewed_hash, "replaced": replaced})
                puts.append(_record_of(user))
            if renewed_hash or keys.keys() - there.keys():
                together = scram.KeysOfUser(password_hash=user.password_hash, keys={**keys, **there})
                puts.append(Record(kind=scram.RECORD_KIND, key=name, value=together.to_json()))
            if puts:
                await self._store.put_records(puts, unchanged=read.unchanged)

    async def all(self) -> list[User]:
        """Every user, by name."""
        users = [User.from_json(record.value) for record in await self._store.list_records([RECORD_KIND])]
        return sorted(users, key=lambda user: user.name)


def _one(read: Read, name: str) -> User:
    """Raises NotFound."""
    value = _value(read, RECORD_KIND, name)
    if value is None:
        raise NotFound(f"no user '{name}'")
    return User.from_json(value)


def _check_there(read: Read, name: str, *, there: bool) -> None:
    if there:
        _one(read, name)
    elif _value(read, RECORD_KIND, name) is not None:
        raise PreconditionFailed(f"user '{name}' was added meanwhile")


def _keys_of(read: Read, user: User) -> Mapping[str, scram.Keys]:
    value = _value(read, scram.RECORD_KIND, user.name)
    return {} if value is None else scram.KeysOfUser.from_json(value).of(user)


def _value(read: Read, kind: str, key: str) -> bytes | None:
    return next((record.value for record in read.records if (record.kind, record.key) == (kind, key)), None)


def _check_password(password: str, kept: Kept) -> None:
    """Of some hashes as slow as to verify them: call it in a thread."""
    if not password:
        raise SyntaxFault("a user needs a password")
    kind = kind_named(kept.kind)
    if kept.hashed:
        if not password.startswith(kind.begins):
            raise SyntaxFault(f"what is kept of the password begins with {' or '.join(kind.begins)}")
        kind.check(password)


class _Secret(NamedTuple):
    """What is kept of a password, and the keys that go with it."""

    kept: str
    keys: Mapping[str, scram.Keys]


def _secret_of(password: str, kept: Kept, whose: Whose, mechanisms: Iterable[str]) -> _Secret:
    """Slow on purpose."""
    if kept.hashed:
        return _Secret(password, {})
    return _Secret(_made(password, kept.kind, whose), scram.make_keys(password, mechanisms))


def _records(user: User, secret: _Secret) -> list[Record]:
    """The user with that password, and its keys."""
    user = user.model_copy(update={"password_hash": secret.kept, "revision": secrets.token_hex(8), "replaced": ""})
    keys = scram.KeysOfUser(password_hash=user.password_hash, keys=secret.keys)
    return [_record_of(user), Record(kind=scram.RECORD_KIND, key=user.name, value=keys.to_json())]


def _made(password: str, kind: str, whose: Whose) -> str:
    """Raises SyntaxFault for a password that no client could sign in with: SCRAM does not allow its characters."""
    try:
        return kind_named(kind).make(password, whose)
    except ValueError as error:
        raise SyntaxFault(f"kept as {kind}: {error}") from None


def _record_of(user: User) -> Record:
    return Record(kind=RECORD_KIND, key=user.name, value=user.to_json())
