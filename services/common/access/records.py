"""The configuration records of access: mgmt writes them, gateways follow them.

A permission is RabbitMQ's: for a user and a virtual host three regular expressions, of the names of what may be
configured, written and read. One without a virtual host applies in every virtual host where the user has no other.
"""

from __future__ import annotations

import json
from typing import Annotated, Final, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationInfo

from services.common.access.expression import LONGEST, check_expression

PERMISSION: Final = "permission"
TOPIC_PERMISSION: Final = "topic_permission"
GROUP: Final = "group"
ACL: Final = "acl"
BEGUN: Final = "access_begun"
"""One record, made at the moment from which users need permissions."""
BEGUN_KEY: Final = "permissions"

EVERYTHING: Final = ".*"
VIRTUAL_HOST: Final = "virtual_host"
"""The router's records of virtual hosts: permissions end with their virtual host."""
FILED_FOR: Final = "filed_for"
"""One record for each virtual host: the id of the one that records of its name are for; see `incarnation_in`."""

_ON_RECORD: Final = "on record"


def _checked(text: str, info: ValidationInfo) -> str:
    """Of what is on record that was asked when it was set, by what was asked then: what cannot be made fits nothing."""
    return text if info.context == _ON_RECORD else check_expression(text)


Expression = Annotated[
    str,
    Field(max_length=LONGEST, description="a regular expression, found anywhere in a name; empty: nothing"),
    AfterValidator(_checked),
]
Name = Annotated[str, Field(min_length=1, max_length=255)]


class _Kept(BaseModel):
    """A record's value is `to_json()`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    def to_json(self) -> bytes:
        """The record's value."""
        return self.model_dump_json().encode()

    @classmethod
    def from_json(cls, value: bytes) -> Self:
        """Raises ValidationError for what is none."""
        return cls.model_validate_json(value, context=_ON_RECORD)


class Terms(_Kept):
    """What may be configured (declared and deleted), written (published and bound to) and read."""

    virtual_host: Annotated[
        Name | None, Field(description="null: every virtual host in which the user has no other permission")
    ] = None
    configure: Expression = ""
    write: Expression = ""
    read: Expression = ""


class Permission(Terms):
    """Of one user."""

    user: Name

    @property
    def key(self) -> str:
        """Key of its record."""
        return permission_key(self.user, self.virtual_host)


class TopicTerms(_Kept):
    """Routing keys with which may be published to an exchange, and bound to it."""

    virtual_host: Name = "/"
    exchange: Annotated[str, Field(max_length=255)]
    write: Expression = ""
    read: Expression = ""


class TopicPermission(TopicTerms):
    """Of one user. `{username}` and `{vhost}` in an expression stand for the user's name and the virtual host."""

    user: Name

    @property
    def key(self) -> str:
        """Key of its record."""
        return topic_key(self.user, self.virtual_host, self.exchange)


class Group(_Kept):
    """Users that rules may name together."""

    name: Name
    members: tuple[Name, ...] = ()


class AclText(_Kept):
    """Rules of Broker-J's ACL files: of a virtual host, or of the broker (null)."""

    virtual_host: Name | None = None
    text: Annotated[str, Field(max_length=1 << 20)]

    @property
    def key(self) -> str:
        """Key of its record."""
        return acl_key(self.virtual_host)


def incarnation_in(value: bytes) -> int:
    """The id in a record of a virtual host or of FILED_FOR; 0: it has none."""
    return int(json.loads(value).get("id", 0))


def is_former(filed_for: int | None, there: int) -> bool:
    """Whether records of a name are for another virtual host than the present one of that name.

    Without a FILED_FOR record they are for the present one: they are older than such records. A router of a release
    without ids, which may serve beside newer ones for a while, proves nothing either way.
    """
    return filed_for is not None and there not in {0, filed_for}


def permission_key(user: str, virtual_host: str | None) -> str:
    """Key of a permission's record."""
    return json.dumps([user, virtual_host])


def topic_key(user: str, virtual_host: str, exchange: str) -> str:
    """Key of a topic permission's record."""
    return json.dumps([user, virtual_host, exchange])


def acl_key(virtual_host: str | None) -> str:
    """Key of the record of an ACL."""
    return json.dumps(virtual_host)
