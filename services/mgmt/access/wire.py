"""Permissions, groups and rules as messages of `proto/mgmt.proto`, and back."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

from google.protobuf.message import Message
from pydantic import BaseModel, ValidationError

from services.common import invalid
from services.common.access.records import AclText, Group, Name, Permission, TopicPermission
from services.common.errors import SyntaxFault
from services.common.limits import USER, VIRTUAL_HOST, Subject
from services.mgmt.access.grants import Grants
from services.mgmt.access.tested import Question
from services.rpc import mgmt_pb2

_M = TypeVar("_M", bound=BaseModel)


async def change(grants: Grants, request: mgmt_pb2.AccessChange) -> None:
    """Carries out the one change that is set; raises SyntaxFault for what cannot be."""
    if field := request.WhichOneof("change"):
        await _CARRY_OUT[field](grants, getattr(request, field))


async def told(grants: Grants) -> mgmt_pb2.Access:
    """All that is set."""
    granted = await grants.all()
    users, hosts = await grants.limits(USER), await grants.limits(VIRTUAL_HOST)
    return mgmt_pb2.Access(
        permissions=[mgmt_pb2.Permission(**each.model_dump()) for each in granted.permissions],
        topic_permissions=[mgmt_pb2.TopicPermission(**each.model_dump()) for each in granted.topic_permissions],
        groups=[mgmt_pb2.Group(**each.model_dump()) for each in granted.groups],
        acls=[mgmt_pb2.Acl(**each.model_dump()) for each in granted.acls],
        limits=[
            *(mgmt_pb2.Limits(user=name, values=values) for name, values in users.items()),
            *(mgmt_pb2.Limits(virtual_host=name, values=values) for name, values in hosts.items()),
        ],
    )


def question(request: mgmt_pb2.TestAccessRequest) -> Question:
    """Of a test."""
    return Question(
        request.user,
        request.action,
        request.kind,
        request.name,
        request.virtual_host,
        dict(request.properties),
        request.host,
        tuple(request.groups),
        tuple(request.tags),
    )


def _read(kind: type[_M], message: Message) -> _M:
    """Raises SyntaxFault for what a field cannot be."""
    optional = {field.name for field in message.DESCRIPTOR.fields if field.has_presence}
    names = (field.name for field in message.DESCRIPTOR.fields)
    said = {name: getattr(message, name) for name in names if name not in optional or message.HasField(name)}
    try:
        return kind.model_validate({name: _plain(value) for name, value in said.items()})
    except ValidationError as error:
        raise SyntaxFault(invalid.told(error.errors())) from None


def _plain(value: Any) -> Any:  # noqa: ANN401 - a field's
    return value if isinstance(value, str) else tuple(value)


class _Membership(BaseModel):
    group: Name
    user: Name

    def of_group(self) -> dict[str, str]:
        """As Grants takes it."""
        return {"name": self.group, "member": self.user}


def _subject(said: mgmt_pb2.Limits | mgmt_pb2.LimitKey) -> Subject:
    """Raises SyntaxFault where no user or virtual host is named."""
    kind = said.WhichOneof("subject")
    if kind is None or not (name := getattr(said, kind)):
        raise SyntaxFault("a limit is of a user or of a virtual host, which is named")
    return Subject({"user": USER, "virtual_host": VIRTUAL_HOST}[kind], name)


def _virtual_host(key: mgmt_pb2.PermissionKey | mgmt_pb2.AclKey) -> str | None:
    return key.virtual_host if key.HasField("virtual_host") else None


_CARRY_OUT: Mapping[str, Callable[[Grants, Any], Awaitable[None]]] = {
    "put_permission": lambda grants, said: grants.put_permission(_read(Permission, said)),
    "clear_permission": lambda grants, said: grants.clear_permission(said.user, _virtual_host(said)),
    "put_topic_permission": lambda grants, said: grants.put_topic_permission(_read(TopicPermission, said)),
    "clear_topic_permission": lambda grants, said: grants.clear_topic_permission(
        said.user, said.virtual_host, said.exchange
    ),
    "put_group": lambda grants, said: grants.put_group(_read(Group, said)),
    "delete_group": lambda grants, said: grants.delete_group(said.name),
    "put_acl": lambda grants, said: grants.put_acl(_read(AclText, said)),
    "remove_acl": lambda grants, said: grants.remove_acl(_virtual_host(said)),
    "join_group": lambda grants, said: grants.join(**_read(_Membership, said).of_group()),
    "leave_group": lambda grants, said: grants.leave(**_read(_Membership, said).of_group()),
    "put_limits": lambda grants, said: grants.put_limits(_subject(said), dict(said.values)),
    "clear_limit": lambda grants, said: grants.clear_limit(_subject(said), said.limit),
}
