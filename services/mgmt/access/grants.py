"""Permissions, groups and rules on record: mgmt is the only writer, gateways follow them (`services/common/access`)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import structlog

from services.common import limit_rules, limits
from services.common.access import records as kept
from services.common.access.acl.parse import parse
from services.common.access.acl.tokens import lines
from services.common.access.records import FILED_FOR, AclText, Group, Permission, TopicPermission
from services.common.clients.overtaken import decided_again
from services.common.clients.store import Read, StoreClient
from services.common.containment import contained
from services.common.errors import BrokerError, NotFound, SyntaxFault
from services.common.limits import Limited, Subject
from services.common.users import RECORD_KIND as USER
from services.mgmt.access.incarnations import Noted, noted
from services.mgmt.preferences.preference import RECORD_KIND as PREFERENCE
from services.rpc.store_pb2 import Record, Records, Unchanged

log = structlog.get_logger()

_SET = (kept.PERMISSION, kept.TOPIC_PERMISSION, kept.GROUP, kept.ACL)
_OF_VIRTUAL_HOSTS = (kept.PERMISSION, kept.TOPIC_PERMISSION, kept.ACL, limits.VIRTUAL_HOST, limit_rules.RECORD_KIND)
_LONGEST = 255
_NONE = -1


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

    async def beginning(self, first: str) -> Read:
        """To be put once: users that are there from before there were permissions keep what they had: everything.

        The same is given to the `first` user where there is none. No records where all that has been put.
        """
        found, unchanged = await self._store.read_records(kept.BEGUN, USER)
        if any(record.kind == kept.BEGUN for record in found):
            return Read([], unchanged)
        if users := [record.key for record in found]:
            log.info("permissions begin: existing users may do everything, as before", users=sorted(users))
        begun = Record(kind=kept.BEGUN, key=kept.BEGUN_KEY, value=b"{}")
        return Read([*map(_everything, users or [first]), begun], unchanged)

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

    @decided_again
    async def add_group(self, name: str) -> None:
        """One that is there keeps its members."""
        async with self._changing:
            read = await self._store.read_records(kept.GROUP)
            if not _group(read, name):
                await self._store.put_records([_record_of(Group(name=name))], unchanged=read.unchanged)

    async def add_member(self, name: str, member: str) -> None:
        """Of a group, beside those that it has. Raises NotFound of the group."""
        await self._change_group(name, lambda group: _with(_there(group, name), member))

    async def remove_member(self, name: str, member: str) -> None:
        """The others stay. Raises NotFound of the group."""
        await self._change_group(name, lambda group: _without(_there(group, name), member))

    async def join(self, name: str, member: str) -> None:
        """As `add_member`; the group is made where there is none."""
        await self._change_group(name, lambda group: _with(group or Group(name=name), member))

    async def leave(self, name: str, member: str) -> None:
        """As `remove_member`. Raises NotFound of a member too."""
        await self._change_group(name, lambda group: _without(_with_member(group, name, member), member))

    @decided_again
    async def _change_group(self, name: str, change: Callable[[Group | None], Group]) -> None:
        """As it is on record now, not as the caller read it: others change it as well."""
        async with self._changing:
            read = await self._store.read_records(kept.GROUP)
            await self._store.put_records([_record_of(change(_group(read, name)))], unchanged=read.unchanged)

    async def put_acl(self, acl: AclText) -> None:
        """Loads rules in place of those that there are. Raises SyntaxFault that names the line, or for none.

        By no rules at all everybody would be refused, who loads them too: an empty file is more likely a mistake.
        """
        parse(acl.text)
        if not any(lines(acl.text)):
            raise SyntaxFault(
                "there are no rules in it, and by none everybody would be refused; remove takes rules away"
            )
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
        if wrong := [what for what, number in said.items() if not _NONE <= number <= limits.MOST]:
            raise SyntaxFault(f"{wrong[0]} is from {_NONE}, for any number, to {limits.MOST}")
        await self._put_limits(subject, said)

    @decided_again
    async def _put_limits(self, subject: Subject, said: Mapping[str, int]) -> None:
        async with self._changing:
            there = await self._has(subject.name) if subject.kind == limits.VIRTUAL_HOST else []
            read = await self._store.read_records(subject.kind)
            values = _limits(read.records).get(subject.name, {})
            record = limits.record_of(Limited(subject, {**values, **said}))
            await self._store.put_records([record], unchanged=[*there, *read.unchanged])

    @decided_again
    async def clear_limit(self, subject: Subject, what: str) -> None:
        """Empty: all that it has. Raises NotFound where it is not set."""
        async with self._changing:
            read = await self._store.read_records(subject.kind)
            values = _limits(read.records).get(subject.name, {})
            if what not in values if what else not values:
                raise NotFound(f"'{subject.name}' has no limit" + (f" '{what}'" if what else ""))
            left = {name: number for name, number in values.items() if what not in ("", name)}
            record = limits.record_of(Limited(subject, left))
            await self._store.put_records([record] if left else [], [] if left else [record], unchanged=read.unchanged)

    async def put_limit_rules(self, virtual_host: str | None, text: str) -> None:
        """In place of those that there are; empty: none. Raises SyntaxFault that names the line, NotFound as above."""
        limit_rules.parse(text)
        kind, key = limit_rules.RECORD_KIND, limit_rules.key_of(virtual_host)
        if text:
            await self._put_in(virtual_host, kind, key, json.dumps({"text": text}).encode())
        else:
            async with self._changing:
                await self._store.put_records(deletes=[Record(kind=kind, key=key)])

    @decided_again
    async def add_limit_rules(self, virtual_host: str | None, more: str) -> str:
        """Behind those that there are; gives all of them. Raises as above."""
        kind, key = limit_rules.RECORD_KIND, limit_rules.key_of(virtual_host)
        async with self._changing:
            there = [] if virtual_host is None else await self._has(virtual_host)
            read = await self._store.read_records(kind)
            former = next((json.loads(each.value)["text"] for each in read.records if each.key == key), "")
            text = f"{former.rstrip()}\n{more}".lstrip()
            limit_rules.parse(text)
            record = Record(kind=kind, key=key, value=json.dumps({"text": text}).encode())
            await self._store.put_records([record], unchanged=[*there, *read.unchanged])
        return text

    async def limits(self, kind: str) -> dict[str, dict[str, int]]:
        """All of users, or of virtual hosts, by name."""
        return _limits(await self._store.list_records([kind]))

    async def all(self) -> Granted:
        """Everything that is set."""
        return _granted(await self._store.list_records(_SET))

    @decided_again
    async def forget_user(self, name: str) -> None:
        """The next user of that name begins with no permission."""
        async with self._changing:
            read = await self._store.read_records(*_SET, PREFERENCE)
            granted = _granted(read.records)
            gone = [(kept.PERMISSION, each.key) for each in granted.permissions if each.user == name]
            gone += [(kept.TOPIC_PERMISSION, each.key) for each in granted.topic_permissions if each.user == name]
            gone.append((limits.USER, Subject(limits.USER, name).key))
            gone += [(PREFERENCE, key) for key in _preferences_of(name, read.records)]
            left = [_without(group, name) for group in granted.groups if name in group.members]
            await self._store.put_records(
                [_record_of(group) for group in left],
                [Record(kind=kind, key=key) for kind, key in gone],
                unchanged=read.unchanged,
            )

    async def follow_virtual_hosts(self, records: AsyncIterator[Records]) -> None:
        """What is set for a virtual host goes with it; ends with the watch of records of kind `virtual_host`.

        Also of one that was deleted and made again while mgmt was away.
        """
        async for batch in records:
            if batch.last or not batch.snapshot:
                try:
                    await self.forget_virtual_hosts()
                except BrokerError as error:
                    contained("forgetting permissions of virtual hosts that are gone", error)

    @decided_again
    async def forget_virtual_hosts(self) -> None:
        """What was filed for virtual hosts that are there no more."""
        async with self._changing:
            await self._forget_virtual_hosts()

    async def _forget_virtual_hosts(self) -> None:
        read = await self._store.read_records(kept.VIRTUAL_HOST, FILED_FOR, *_OF_VIRTUAL_HOSTS)
        note = noted(read.records)
        gone = [
            Record(kind=record.kind, key=record.key)
            for record in read.records
            if record.kind in _OF_VIRTUAL_HOSTS and _is_gone(_virtual_host_of(record), note)
        ]
        if gone or note.puts or note.deletes:
            await self._store.put_records([*note.puts], [*note.deletes, *gone], unchanged=read.unchanged)

    @decided_again
    async def _put_in(self, virtual_host: str | None, kind: str, key: str, value: bytes) -> None:
        """For the one that is there now: what was filed for another one of that name goes before."""
        async with self._changing:
            there = [] if virtual_host is None else await self._has(virtual_host)
            await self._store.put_records([Record(kind=kind, key=key, value=value)], unchanged=there)

    async def _has(self, virtual_host: str) -> list[Unchanged]:
        """Raises NotFound. What was filed for another one of its name is gone then."""
        while True:
            read = await self._store.read_records(kept.VIRTUAL_HOST, FILED_FOR)
            note = noted(read.records)
            if virtual_host not in note.there:
                raise NotFound(f"vhost '{virtual_host}' not found")
            if not (note.puts or note.deletes):
                return read.unchanged
            await self._forget_virtual_hosts()

    async def _put(self, kind: str, key: str, value: bytes) -> None:
        async with self._changing:
            await self._store.put_records([Record(kind=kind, key=key, value=value)])

    @decided_again
    async def _delete(self, kind: str, key: str, nothing: str) -> None:
        async with self._changing:
            read = await self._store.read_records(kind)
            if all(record.key != key for record in read.records):
                raise NotFound(nothing)
            await self._store.put_records(deletes=[Record(kind=kind, key=key)], unchanged=read.unchanged)


def _granted(found: Sequence[Record]) -> Granted:
    by_kind = {kind: [each.value for each in found if each.kind == kind] for kind in {each.kind for each in found}}
    return Granted(
        sorted(map(Permission.from_json, by_kind.get(kept.PERMISSION, ())), key=lambda each: each.key),
        sorted(map(TopicPermission.from_json, by_kind.get(kept.TOPIC_PERMISSION, ())), key=lambda each: each.key),
        sorted(map(Group.from_json, by_kind.get(kept.GROUP, ())), key=lambda each: each.name),
        sorted(map(AclText.from_json, by_kind.get(kept.ACL, ())), key=lambda each: each.key),
    )


def _group(read: Read, name: str) -> Group | None:
    return next((Group.from_json(record.value) for record in read.records if record.key == name), None)


def _there(group: Group | None, name: str) -> Group:
    """Raises NotFound."""
    if group is None:
        raise NotFound(f"no group '{name}'")
    return group


def _with_member(group: Group | None, name: str, member: str) -> Group:
    if group is None or member not in group.members:
        raise NotFound(f"user '{member}' is in no group '{name}'")
    return group


def _limits(records: Iterable[Record]) -> dict[str, dict[str, int]]:
    found = sorted(map(limits.read, records), key=lambda each: each.subject)
    return {each.subject.name: each.values for each in found}


def _preferences_of(user: str, records: Iterable[Record]) -> list[str]:
    its = (record for record in records if record.kind == PREFERENCE)
    return [record.key for record in its if json.loads(record.value).get("owner") == user]


def _everything(user: str) -> Record:
    permission = Permission(user=user, configure=kept.EVERYTHING, write=kept.EVERYTHING, read=kept.EVERYTHING)
    return Record(kind=kept.PERMISSION, key=permission.key, value=permission.to_json())


def _record_of(group: Group) -> Record:
    return Record(kind=kept.GROUP, key=group.name, value=group.to_json())


def _with(group: Group, member: str) -> Group:
    return Group(name=group.name, members=(*_without(group, member).members, member))


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
