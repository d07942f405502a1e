"""Permissions, groups and rules on record: mgmt is the only writer, gateways follow them (`services/common/access`)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass

import structlog

from services.common import limit_rules, limits
from services.common.access import records as kept
from services.common.access.acl.parse import parse
from services.common.access.records import FILED_FOR, AclText, Group, Permission, TopicPermission
from services.common.clients.store import StoreClient
from services.common.containment import contained
from services.common.errors import BrokerError, NotFound, SyntaxFault
from services.common.limits import Limited, Subject
from services.common.users import RECORD_KIND as USER
from services.mgmt.access.incarnations import Noted, noted
from services.mgmt.preferences.preference import RECORD_KIND as PREFERENCE
from services.rpc.store_pb2 import Record, Records

log = structlog.get_logger()

_OF_VIRTUAL_HOSTS = (kept.PERMISSION, kept.TOPIC_PERMISSION, kept.ACL, limits.VIRTUAL_HOST, limit_rules.RECORD_KIND)
_LONGEST = 255


@dataclass(frozen=True, slots=True)
class Granted:
    """All that is set, in order."""

    permissions: list[Permission]
    topic_permissions: list[TopicPermission]
    groups: list[Group]
    acls: list[AclText]


class Grants:
    """Every call raises the BrokerError that the store answered with, or Unavailable."""

    def __init__(self, store: StoreClient) -> None:
        self._store = store
        self._changing = asyncio.Lock()

    async def begin(self, first: str) -> None:
        """Once: users that are there from before there were permissions keep what they had, which is everything.

        The same is given to the `first` user while there is none at all.
        """
        users = [record.key for record in await self._store.list_records([USER])]
        begun = await self._store.list_records([kept.BEGUN])
        everything = [_everything(user) for user in ([] if begun else users) or ([] if users else [first])]
        if begun and not everything:
            return
        await self._store.put_records([*everything, Record(kind=kept.BEGUN, key=kept.BEGUN_KEY, value=b"{}")])
        if users and not begun:
            log.info("permissions begin: users that there are may do everything, as before", users=sorted(users))

    async def put_permission(self, permission: Permission) -> None:
        """Sets what a user may do in a virtual host, or in all of them. Raises NotFound for one that is not there."""
        await self._put_in(permission.virtual_host, kept.PERMISSION, permission.key, permission.to_json())

    async def clear_permission(self, user: str, virtual_host: str | None) -> None:
        """Raises NotFound where nothing is set."""
        where = "all vhosts" if virtual_host is None else f"vhost '{virtual_host}'"
        nothing = f"user '{user}' has no permission of its own in {where}"
        await self._delete(kept.PERMISSION, kept.permission_key(user, virtual_host), nothing)

    async def put_topic_permission(self, permission: TopicPermission) -> None:
        """Sets by which keys a user may publish and bind. Raises NotFound for a virtual host that is not there."""
        await self._put_in(permission.virtual_host, kept.TOPIC_PERMISSION, permission.key, permission.to_json())

    async def clear_topic_permission(self, user: str, virtual_host: str, exchange: str) -> None:
        """Raises NotFound where nothing is set."""
        nothing = f"user '{user}' has no topic permission on exchange '{exchange}' in vhost '{virtual_host}'"
        await self._delete(kept.TOPIC_PERMISSION, kept.topic_key(user, virtual_host, exchange), nothing)

    async def put_group(self, group: Group) -> None:
        """Adds a group, or replaces its members."""
        await self._put(kept.GROUP, group.name, group.to_json())

    async def delete_group(self, name: str) -> None:
        """Raises NotFound when there is none of that name."""
        await self._delete(kept.GROUP, name, f"no group '{name}'")

    async def put_acl(self, acl: AclText) -> None:
        """Loads rules in place of those that there are. Raises SyntaxFault that names the line."""
        parse(acl.text)
        await self._put_in(acl.virtual_host, kept.ACL, acl.key, acl.to_json())

    async def remove_acl(self, virtual_host: str | None) -> None:
        """Raises NotFound where none are loaded."""
        where = "the broker" if virtual_host is None else f"vhost '{virtual_host}'"
        await self._delete(kept.ACL, kept.acl_key(virtual_host), f"no rules are loaded for {where}")

    async def put_limits(self, subject: Subject, said: Mapping[str, int]) -> None:
        """Beside those that it has; negative: none. Raises SyntaxFault for what cannot be limited, NotFound as above.

        A user may be one that is not on record: of a directory.
        """
        if len(subject.name) > _LONGEST:
            raise SyntaxFault(f"names have at most {_LONGEST} characters")
        known = limits.KNOWN[subject.kind]
        if unknown := [what for what in said if what not in known]:
            raise SyntaxFault(f"there is no limit '{unknown[0]}'; there are {', '.join(known)}")
        async with self._changing:
            if subject.kind == limits.VIRTUAL_HOST:
                await self._has(subject.name)
            values = (await self.limits(subject.kind)).get(subject.name, {})
            await self._store.put_records([limits.record_of(Limited(subject, {**values, **said}))])

    async def clear_limit(self, subject: Subject, what: str) -> None:
        """Raises NotFound where it is not set."""
        async with self._changing:
            values = (await self.limits(subject.kind)).get(subject.name, {})
            if what not in values:
                raise NotFound(f"'{subject.name}' has no limit '{what}'")
            left = {name: number for name, number in values.items() if name != what}
            record = limits.record_of(Limited(subject, left))
            await self._store.put_records([record] if left else [], [] if left else [record])

    async def put_limit_rules(self, virtual_host: str | None, text: str) -> None:
        """In place of those that there are; empty: none. Raises SyntaxFault that names the line, NotFound as above."""
        limit_rules.parse(text)
        kind, key = limit_rules.RECORD_KIND, limit_rules.key_of(virtual_host)
        if text:
            await self._put_in(virtual_host, kind, key, json.dumps({"text": text}).encode())
        else:
            async with self._changing:
                await self._store.put_records(deletes=[Record(kind=kind, key=key)])

    async def limits(self, kind: str) -> dict[str, dict[str, int]]:
        """All of users, or of virtual hosts, by name."""
        found = map(limits.read, await self._store.list_records([kind]))
        return {each.subject.name: each.values for each in sorted(found, key=lambda each: each.subject)}

    async def all(self) -> Granted:
        """Everything that is set."""
        found = await self._store.list_records([kept.PERMISSION, kept.TOPIC_PERMISSION, kept.GROUP, kept.ACL])
        by_kind = {kind: [each.value for each in found if each.kind == kind] for kind in {each.kind for each in found}}
        return Granted(
            sorted(map(Permission.from_json, by_kind.get(kept.PERMISSION, ())), key=lambda each: each.key),
            sorted(map(TopicPermission.from_json, by_kind.get(kept.TOPIC_PERMISSION, ())), key=lambda each: each.key),
            sorted(map(Group.from_json, by_kind.get(kept.GROUP, ())), key=lambda each: each.name),
            sorted(map(AclText.from_json, by_kind.get(kept.ACL, ())), key=lambda each: each.key),
        )

    async def forget_user(self, name: str) -> None:
        """Who gets the name next begins with nothing."""
        async with self._changing:
            granted = await self.all()
            gone = [(kept.PERMISSION, each.key) for each in granted.permissions if each.user == name]
            gone += [(kept.TOPIC_PERMISSION, each.key) for each in granted.topic_permissions if each.user == name]
            gone.append((limits.USER, Subject(limits.USER, name).key))
            gone += [(PREFERENCE, key) for key in await self._preferences_of(name)]
            left = [_without(group, name) for group in granted.groups if name in group.members]
            await self._store.put_records(
                [Record(kind=kept.GROUP, key=group.name, value=group.to_json()) for group in left],
                [Record(kind=kind, key=key) for kind, key in gone],
            )

    async def _preferences_of(self, user: str) -> list[str]:
        return [
            record.key
            for record in await self._store.list_records([PREFERENCE])
            if json.loads(record.value).get("owner") == user
        ]

    async def follow_virtual_hosts(self, records: AsyncIterator[Records]) -> None:
        """What is set for a virtual host goes with it; ends with the watch of records of kind `virtual_host`.

        Also of one that was made again while nobody looked.
        """
        async for batch in records:
            if batch.last or not batch.snapshot:
                try:
                    await self._forget_virtual_hosts()
                except BrokerError as error:
                    contained("forgetting permissions of virtual hosts that are gone", error)

    async def _forget_virtual_hosts(self) -> None:
        async with self._changing:
            found = await self._store.list_records([kept.VIRTUAL_HOST, FILED_FOR, *_OF_VIRTUAL_HOSTS])
            await self._forget(noted(found), found)

    async def _forget(self, note: Noted, found: Sequence[Record]) -> None:
        """Of what was `found`, what was filed for virtual hosts that are there no more."""
        gone = [
            Record(kind=record.kind, key=record.key)
            for record in found
            if record.kind in _OF_VIRTUAL_HOSTS and _is_gone(_virtual_host_of(record), note)
        ]
        if gone or note.puts or note.deletes:
            await self._store.put_records([*note.puts], [*note.deletes, *gone])

    async def _put_in(self, virtual_host: str | None, kind: str, key: str, value: bytes) -> None:
        """For the one that is there now: what was filed for another one of that name goes before."""
        async with self._changing:
            if virtual_host is not None:
                await self._has(virtual_host)
            await self._store.put_records([Record(kind=kind, key=key, value=value)])

    async def _has(self, virtual_host: str) -> None:
        note = noted(await self._store.list_records([kept.VIRTUAL_HOST, FILED_FOR]))
        if virtual_host not in note.there:
            raise NotFound(f"vhost '{virtual_host}' not found")
        if note.puts or note.deletes:
            await self._forget(note, await self._store.list_records(_OF_VIRTUAL_HOSTS))

    async def _put(self, kind: str, key: str, value: bytes) -> None:
        async with self._changing:
            await self._store.put_records([Record(kind=kind, key=key, value=value)])

    async def _delete(self, kind: str, key: str, nothing: str) -> None:
        async with self._changing:
            if all(record.key != key for record in await self._store.list_records([kind])):
                raise NotFound(nothing)
            await self._store.put_records(deletes=[Record(kind=kind, key=key)])


def _everything(user: str) -> Record:
    permission = Permission(user=user, configure=kept.EVERYTHING, write=kept.EVERYTHING, read=kept.EVERYTHING)
    return Record(kind=kept.PERMISSION, key=permission.key, value=permission.to_json())


def _without(group: Group, member: str) -> Group:
    return group.model_copy(update={"members": tuple(each for each in group.members if each != member)})


def _is_gone(virtual_host: str | None, note: Noted) -> bool:
    if virtual_host is None or not note.there:
        return False
    return virtual_host in note.outdated or virtual_host not in note.there


def _virtual_host_of(record: Record) -> str | None:
    key = json.loads(record.key)
    host: str | None = key[1] if isinstance(key, list) else key
    return host
