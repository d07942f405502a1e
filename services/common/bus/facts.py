"""What an event may say: one class for each kind. Documented in README.md; fields are only ever added."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field


class _Facts(BaseModel):
    # A subscriber may be older than the publishing service: it must ignore what it does not know.
    model_config = ConfigDict(frozen=True, extra="ignore")


class InVirtualHost(_Facts):
    """What belongs to a virtual host, whose token its subject has."""

    virtual_host: str


# ------------------------------------------------------------------ topology, told by the router


class _VirtualHost(InVirtualHost):
    pass


class VirtualHostCreated(_VirtualHost):
    kind: Literal["virtual_host.created"] = "virtual_host.created"


class VirtualHostDeleted(_VirtualHost):
    kind: Literal["virtual_host.deleted"] = "virtual_host.deleted"


class _Exchange(InVirtualHost):
    exchange: str
    type: str
    durable: bool
    auto_delete: bool
    internal: bool


class ExchangeCreated(_Exchange):
    kind: Literal["exchange.created"] = "exchange.created"


class ExchangeDeleted(_Exchange):
    kind: Literal["exchange.deleted"] = "exchange.deleted"


class _Queue(InVirtualHost):
    queue: str
    queue_id: int
    partition: int
    type: str
    durable: bool
    auto_delete: bool
    exclusive_to: str  # connection, or ""


class QueueCreated(_Queue):
    kind: Literal["queue.created"] = "queue.created"


class QueueDeleted(_Queue):
    kind: Literal["queue.deleted"] = "queue.deleted"


class _Binding(InVirtualHost):
    source: str
    destination: str
    to_exchange: bool
    routing_key: str
    arguments: str  # JSON, services/common/message/arguments.py


class BindingCreated(_Binding):
    kind: Literal["binding.created"] = "binding.created"


class BindingDeleted(_Binding):
    kind: Literal["binding.deleted"] = "binding.deleted"


# ------------------------------------------------------------------ consumers, published by queue processes


class _Consumer(InVirtualHost):
    queue: str
    queue_id: int
    partition: int
    connection: str
    tag: str
    gateway: str  # link through which it consumes


class ConsumerAttached(_Consumer):
    kind: Literal["consumer.attached"] = "consumer.attached"
    exclusive: bool
    browse: bool
    again: bool  # it consumed before, from a former owner of the partition


class ConsumerDetached(_Consumer):
    """By its own wish, or since its connection is gone."""

    kind: Literal["consumer.detached"] = "consumer.detached"


class ConsumerCancelled(_Consumer):
    """By the broker."""

    kind: Literal["consumer.cancelled"] = "consumer.cancelled"
    reason: Literal["queue deleted", "partition moved"]


# ------------------------------------------------------------------ connections, published by gateways


class _Connection(_Facts):
    connection: str
    peer: str
    user: str
    virtual_host: str


class ConnectionOpened(_Connection):
    kind: Literal["connection.opened"] = "connection.opened"


class ConnectionClosed(_Connection):
    kind: Literal["connection.closed"] = "connection.closed"


class GatewayLost(_Facts):
    """Told by the router: it was silent for so long that its connections count as gone. None of them is told alone."""

    kind: Literal["gateway.lost"] = "gateway.lost"
    gateway: str
    connections: str  # what the names of its connections begin with


# ------------------------------------------------------------------ leases, published by the store


class _Lease(_Facts):
    lease: str
    partition: int | None  # of leases of partitions
    role: str
    member: str
    epoch: int


class LeaseAcquired(_Lease):
    kind: Literal["lease.acquired"] = "lease.acquired"
    address: str


class LeaseReleased(_Lease):
    """Its holder gave it back."""

    kind: Literal["lease.released"] = "lease.released"


class LeaseLost(_Lease):
    """Its holder was silent for too long."""

    kind: Literal["lease.lost"] = "lease.lost"


# ------------------------------------------------------------------ the audit log, published by gateways and the store


class Audited(_Facts):
    """A line of the audit log: who signed in, was refused, was denied what, changed what. Nothing secret is in it."""

    kind: Literal["audit.recorded"] = "audit.recorded"
    event: Literal["signed in", "refused", "denied", "changed"]
    user: str
    provider: str
    mechanism: str
    peer: str
    reason: str
    by: str
    what: str
    name: str
    change: str


# ------------------------------------------------------------------ the bus itself, published by every service


class Gap(_Facts):
    """The teller's events `first` to `last` (sequences) may not have arrived; comes before those that follow them."""

    kind: Literal["bus.gap"] = "bus.gap"
    first: int
    last: int
    count: int


Facts = Annotated[
    VirtualHostCreated
    | VirtualHostDeleted
    | ExchangeCreated
    | ExchangeDeleted
    | QueueCreated
    | QueueDeleted
    | BindingCreated
    | BindingDeleted
    | ConsumerAttached
    | ConsumerDetached
    | ConsumerCancelled
    | ConnectionOpened
    | ConnectionClosed
    | GatewayLost
    | LeaseAcquired
    | LeaseReleased
    | LeaseLost
    | Audited
    | Gap,
    Field(discriminator="kind"),
]
