"""What RabbitMQ's tools say of a thing that they want: bodies of requests, and the items of definitions.

Keys that mean nothing here are passed over, as RabbitMQ does; rabbitmqadmin says "true" in quotes.
"""

from __future__ import annotations

from typing import Annotated, Any, Final

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, SecretStr

from services.common.access.records import Expression
from services.common.limits import MOST
from services.common.message import LONGEST_NAME


def _short(name: str) -> str:
    if len(name.encode()) > LONGEST_NAME:
        raise ValueError(f"at most {LONGEST_NAME} bytes")
    return name


Short = Annotated[str, BeforeValidator(lambda value: _short(value) if isinstance(value, str) else value)]
_NONE_IN_LIST = BeforeValidator(lambda value: {} if value in ([], None) else value)
Table = Annotated[dict[str, Any], _NONE_IN_LIST]
"""Exports of older versions have [] for none."""


def _tags(value: object) -> object:
    """Before 3.9 they were one text."""
    if not isinstance(value, str):
        return value
    return [tag.strip() for tag in value.split(",") if tag.strip()]


Tags = Annotated[tuple[str, ...], BeforeValidator(_tags), Field(max_length=64)]


Limit = Annotated[int, Field(ge=-1, le=MOST, strict=True)]
VIRTUAL_HOST_LIMITS: Final = "vhost-limits"
"""Component of the parameters that limits of virtual hosts are in definitions."""
LIMITS: Final = "limits"
"""What such a parameter is called."""


LONGEST_DESCRIPTION: Final = 1 << 15
SAID: Final = {"description", "tags", "default_queue_type"}


def _by_name(value: object) -> object:
    """Newer versions have a list of them in virtual hosts."""
    if not isinstance(value, list):
        return {} if value is None else value
    named = {str(each.get("name")): each.get("value") for each in value if isinstance(each, dict)}
    return named or _of_pairs(value)


def _of_pairs(value: object) -> object:
    """What `rabbitmqctl export_definitions` makes of a map that is within a parameter."""
    are_pairs = isinstance(value, list) and all(isinstance(each, list) and len(each) == 2 for each in value)
    return {str(name): its for name, its in value} if are_pairs else value  # type: ignore[attr-defined]


class _Form(BaseModel):
    model_config = ConfigDict(frozen=True)


class ExchangeForm(_Form):
    """An exchange."""

    type: str = Field("direct", max_length=255)
    durable: bool = False
    auto_delete: bool = False
    internal: bool = False
    arguments: Table = Field(default_factory=dict)


class QueueForm(_Form):
    """A queue."""

    durable: bool = False
    auto_delete: bool = False
    arguments: Table = Field(default_factory=dict)


class BindingForm(_Form):
    """Of a source and a destination that are told otherwise."""

    routing_key: Short = ""
    arguments: Table = Field(default_factory=dict)


class PolicyForm(_Form):
    """A policy; the router says which definitions there are."""

    model_config = ConfigDict(frozen=True, populate_by_name=True)

    pattern: str
    definition: dict[str, Any]
    apply_to: str = Field("all", alias="apply-to")
    priority: int = Field(0, ge=-(1 << 31), lt=1 << 31)


class UserForm(_Form):
    """A user: a password, or the hash of one."""

    password: SecretStr | None = None
    password_hash: SecretStr | None = None
    hashing_algorithm: str | None = Field(None, max_length=64)
    tags: Tags


class PermissionForm(_Form):
    """Three regular expressions of names."""

    configure: Expression
    write: Expression
    read: Expression


class TopicPermissionForm(_Form):
    """Two regular expressions of routing keys."""

    exchange: str = Field(max_length=255)
    write: Expression
    read: Expression


class UserNames(_Form):
    """Of users that are to be deleted."""

    users: tuple[str, ...] = Field(max_length=10_000)


# ------------------------------------------------------------------ items of definitions


class LimitForm(_Form):
    """How many there may be at most; negative: any number."""

    value: Limit


class _InVirtualHost(_Form):
    vhost: str = Field(max_length=255)


class NamedExchange(ExchangeForm, _InVirtualHost):
    """An exchange with its place."""

    name: Short


class NamedQueue(QueueForm, _InVirtualHost):
    """A queue with its place."""

    name: Short


class PlacedBinding(BindingForm, _InVirtualHost):
    """A binding with its place."""

    source: str
    destination: str
    destination_type: str = "queue"


class NamedUser(UserForm):
    """A user with the name, and with limits."""

    name: str = Field(min_length=1)
    limits: Annotated[dict[str, Limit], _NONE_IN_LIST] = Field(default_factory=dict)


class NamedPolicy(PolicyForm, _InVirtualHost):
    """A policy with its place."""

    name: Short


class _Exported(PolicyForm):
    """As it is in a parameter."""

    definition: Annotated[dict[str, Any], BeforeValidator(_of_pairs)]


class NamedOperatorPolicy(_InVirtualHost):
    """An operator's policy: a parameter."""

    name: Short
    value: _Exported


class PlacedLimits(_InVirtualHost):
    """Of a virtual host: the value of a parameter."""

    value: Annotated[dict[str, Limit], _NONE_IN_LIST]


class PlacedPermission(PermissionForm, _InVirtualHost):
    """Of a user."""

    user: str = Field(min_length=1, max_length=255)


class PlacedTopicPermission(TopicPermissionForm, _InVirtualHost):
    """Of a user."""

    user: str = Field(min_length=1, max_length=255)


class Metadata(_Form):
    """What may be said of a virtual host; None: nothing is."""

    description: Annotated[str, Field(max_length=LONGEST_DESCRIPTION)] | None = None
    tags: Tags | None = None
    default_queue_type: Annotated[
        Short | None, BeforeValidator(lambda value: None if value in ("undefined", "") else value)
    ] = None


class VirtualHostForm(Metadata):
    """A virtual host. Newer versions say the same twice."""

    metadata: Annotated[Metadata, _NONE_IN_LIST] = Metadata()

    @property
    def said(self) -> dict[str, Any]:
        """What is said, by name."""
        return self.metadata.model_dump(exclude_none=True) | self.model_dump(exclude_none=True, include=SAID)


class NamedVirtualHost(VirtualHostForm):
    """The same with its name, in definitions."""

    name: Short = Field(min_length=1)
    limits: Annotated[dict[str, Limit], BeforeValidator(_by_name)] = Field(default_factory=dict)
