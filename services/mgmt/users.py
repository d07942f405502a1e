"""The users of the broker, and their keys: mgmt is the only writer, the store keeps them, gateways follow them."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import structlog

from services.common import scram
from services.common.clients.store import StoreClient
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

    async def disguise(self) -> None:
        """Makes the secret that disguises who is no user, where there is none."""
        if not await self._store.list_records([scram.DISGUISE_KIND]):
            secret = Record(kind=scram.DISGUISE_KIND, key=_DISGUISE, value=secrets.token_bytes(_DISGUISE_BYTES))
            await self._store.put_records([secret])

    async def seed(self, first: FirstUser = GUEST, beside: Sequence[Record] = ()) -> None:
        """Makes the first user when there is none at all, and at the same moment what is `beside` it."""
        made = [] if await self.all() else await self._first(first)
        if made or beside:
            await self._store.put_records([*made, *beside])
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

        `there`: whether there is one, as whoever asks was asked about. Raises NotFound, PreconditionFailed where it is
        otherwise by now: who may create a user may not replace one, nor the other way round.
        """
        if not 0 < len(name.encode()) <= _LONGEST_NAME:
            raise SyntaxFault(f"a user's name has 1 to {_LONGEST_NAME} bytes")
        secret = await self._secret(name, password, kept)
        user = User(name=name, password_hash="", tags=tuple(tags), loopback_only=loopback_only)
        async with self._changing:
            if there is not None:
                await self._is_there(name, there=there)
            await self._store.put_records(_records(user, secret))

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

        Raises PreconditionFailed where the password was changed while this one was hashed: it may be somebody else's.
        """
        former = await self._one(name)
        secret = None if password is None else await self._secret(name, password, kept)
        told = {"tags": None if tags is None else tuple(tags), "loopback_only": loopback_only}
        changes = {field: value for field, value in told.items() if value is not None}
        async with self._changing:
            user = await self._one(name)
            if user.revision != former.revision:
                raise PreconditionFailed(f"user '{name}' was changed at the same time; try again")
            user = user.model_copy(update=changes)
            await self._store.put_records(_records(user, secret) if secret else [_record_of(user)])

    async def _secret(self, name: str, password: str, kept: Kept) -> _Secret:
        """Made before anything is looked at that others may change: it takes its time."""
        await asyncio.to_thread(_check_password, password, kept)
        return await asyncio.to_thread(_secret_of, password, kept, Whose(name, self._sealing), self._mechanisms)

    async def _is_there(self, name: str, *, there: bool) -> None:
        if there:
            await self.check(name)
        elif any(user.name == name for user in await self.all()):
            raise PreconditionFailed(f"there is a user '{name}' by now")

    async def set_tags(self, name: str, tags: Iterable[str]) -> None:
        """In place of those that the user has. Raises NotFound when there is none of that name."""
        async with self._changing:
            user = (await self._one(name)).model_copy(update={"tags": tuple(tags)})
            await self._store.put_records([Record(kind=RECORD_KIND, key=name, value=user.to_json())])

    async def check(self, name: str) -> None:
        """Raises NotFound when there is none of that name."""
        await self._one(name)

    async def delete(self, name: str) -> None:
        """Raises NotFound when there is none of that name."""
        async with self._changing:
            await self._one(name)
            deletes = [Record(kind=kind, key=name) for kind in (RECORD_KIND, scram.RECORD_KIND)]
            await self._store.put_records(deletes=deletes)

    async def add_keys(
        self, name: str, password_hash: str, keys: Mapping[str, scram.Keys], renewed_hash: str = ""
    ) -> None:
        """For those mechanisms of which the user has none, and a newer hash of the password, if any.

        Raises NotFound, and PreconditionFailed for another hash.
        """
        async with self._changing:
            user = await self._one(name)
            if user.password_hash != password_hash:
                raise PreconditionFailed(f"user '{name}' has another password by now")
            there = await self._keys_of(user)
            puts = []
            if renewed_hash:
                replaced = user.replaced or digest_of(user.password_hash)
                user = user.model_copy(update={"password_hash": renewed_hash, "replaced": replaced})
                puts.append(_record_of(user))
            if renewed_hash or keys.keys() - there.keys():
                together = scram.KeysOfUser(password_hash=user.password_hash, keys={**keys, **there})
                puts.append(Record(kind=scram.RECORD_KIND, key=name, value=together.to_json()))
            if puts:
                await self._store.put_records(puts)

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
    """Raises SyntaxFault for a password that nobody could say: characters that SCRAM does not allow."""
    try:
        return kind_named(kind).make(password, whose)
    except ValueError as error:
        raise SyntaxFault(f"kept as {kind}: {error}") from None


def _record_of(user: User) -> Record:
    return Record(kind=RECORD_KIND, key=user.name, value=user.to_json())
