"""All rules of access, as the records have them: decisions are made from these."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from services.common import users
from services.common.access import records
from services.common.access.acl.parse import parse
from services.common.access.acl.rule_set import UNREADABLE, RuleSet
from services.common.access.asked import Principal
from services.common.access.records import AclText, Group, Permission, TopicPermission
from services.common.errors import SyntaxFault
from services.common.users import User
from services.rpc.store_pb2 import Record

KINDS = (
    users.RECORD_KIND, records.PERMISSION, records.TOPIC_PERMISSION, records.GROUP, records.ACL, records.BEGUN,
    records.VIRTUAL_HOST, records.FILED_FOR,
)  # fmt: skip


@dataclass(slots=True)
class Rules:
    """`begun`: there are permissions; before that, users from before permissions may do what they could.

    Rules for a virtual host no longer count when another one has its name: mgmt removes them when it can.
    """

    begun: bool = False
    tags: dict[str, frozenset[str]] = field(default_factory=dict)  # by user
    _permissions: dict[tuple[str, str | None], Permission] = field(default_factory=dict)  # by user and virtual host
    _topics: dict[tuple[str, str, str], TopicPermission] = field(default_factory=dict)  # with the exchange
    _groups: dict[str, Group] = field(default_factory=dict)
    _groups_of: dict[str, frozenset[str]] = field(default_factory=dict)  # by user
    _acls: dict[str, RuleSet] = field(default_factory=dict)
    _hosts: dict[str, int] = field(default_factory=dict)  # virtual host → the id of its incarnation
    _filed_for: dict[str, int] = field(default_factory=dict)

    def apply(self, record: Record) -> None:
        """Raises ValidationError for a record that cannot be read: then it permits nothing."""
        appliers: Mapping[str, Callable[[Record], None]] = {
            users.RECORD_KIND: self._user,
            records.PERMISSION: self._permission,
            records.TOPIC_PERMISSION: self._topic,
            records.GROUP: self._group,
            records.ACL: self._acl,
            records.BEGUN: self._begun,
            records.VIRTUAL_HOST: lambda record: _note(self._hosts, record),
            records.FILED_FOR: lambda record: _note(self._filed_for, record),
        }
        appliers[record.kind](record)

    def permission(self, user: str, virtual_host: str) -> Permission | None:
        """The user's permission for the virtual host, else the one for all virtual hosts."""
        of_all = self._permissions.get((user, None))
        return of_all if self._is_former(virtual_host) else self._permissions.get((user, virtual_host)) or of_all

    def topic_permission(self, user: str, virtual_host: str, exchange: str) -> TopicPermission | None:
        """None: every key is allowed."""
        if not self._topics or self._is_former(virtual_host):
            return None
        return self._topics.get((user, virtual_host, exchange))

    def acl(self, virtual_host: str | None) -> RuleSet | None:
        """The ACL of a virtual host, or of the broker (None)."""
        if not self._acls or (virtual_host is not None and self._is_former(virtual_host)):
            return None
        return self._acls.get(records.acl_key(virtual_host))

    @property
    def wants_names(self) -> bool:
        """Whether a rule names clients' hosts, so that host names must be looked up."""
        return any(each.wants_names for each in self._acls.values())

    def principal(self, user: str, host: str = "", host_name: str = "") -> Principal:
        """A user for questions, with the groups and tags on record; `host` is the address that it connects from."""
        return Principal(user, self._groups_of.get(user, _NONE), self.tags.get(user, _NONE), host, host_name)

    def _is_former(self, virtual_host: str) -> bool:
        return records.is_former(self._filed_for.get(virtual_host), self._hosts.get(virtual_host, 0))

    def _user(self, record: Record) -> None:
        self.tags.pop(record.key, None)
        if not record.deleted:
            self.tags[record.key] = frozenset(User.from_json(record.value).tags)

    def _permission(self, record: Record) -> None:
        key: tuple[str, str | None] = _parts(record.key)
        self._permissions.pop(key, None)
        if not record.deleted:
            self._permissions[key] = Permission.from_json(record.value)

    def _topic(self, record: Record) -> None:
        key: tuple[str, str, str] = _parts(record.key)
        self._topics.pop(key, None)
        if not record.deleted:
            # If the record cannot be read: without this entry every key would be allowed.
            self._topics[key] = _NO_KEY
            self._topics[key] = TopicPermission.from_json(record.value)

    def _group(self, record: Record) -> None:
        if former := self._groups.pop(record.key, None):
            for member in former.members:
                self._groups_of[member] = self._groups_of.get(member, _NONE) - {former.name}
        if not record.deleted:
            group = self._groups[record.key] = Group.from_json(record.value)
            for member in group.members:
                self._groups_of[member] = self._groups_of.get(member, _NONE) | {group.name}

    def _acl(self, record: Record) -> None:
        self._acls.pop(record.key, None)
        if not record.deleted:
            # If the record cannot be read: without this entry other rules would decide, and allow what these deny.
            self._acls[record.key] = UNREADABLE
            self._acls[record.key] = _read(record)

    def _begun(self, record: Record) -> None:
        self.begun = not record.deleted


_NONE: frozenset[str] = frozenset()
_NO_KEY = TopicPermission(user="?", exchange="?", write="(?!)", read="(?!)")


def _note(incarnations: dict[str, int], record: Record) -> None:
    incarnations.pop(record.key, None)
    if not record.deleted:
        incarnations[record.key] = records.incarnation_in(record.value)


def _parts(key: str) -> Any:  # noqa: ANN401 - the record's writer knows its key's parts
    return tuple(json.loads(key))


def _read(record: Record) -> RuleSet:
    try:
        return parse(AclText.from_json(record.value).text)
    except SyntaxFault as error:
        raise ValueError(error.text) from None
