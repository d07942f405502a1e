"""The topology as configuration records, and back. What is written here is on disk: names and shapes may not change.

Reading raises ValueError for what is no such record.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from pydantic import TypeAdapter

from services.common.topology.definitions import Exchange, Host, Queue
from services.common.topology.exchanges.exchange_type import Binding, Destination
from services.common.topology.life import NOBODY, Life, Party, Scope, Unused, of_connection
from services.common.topology.policies import Policy

VIRTUAL_HOST = "virtual_host"
POLICY = "policy"
EXCHANGE = "exchange"
QUEUE = "queue"
BINDING = "binding"
_USERS, _OPERATORS = "user", "operator"  # whose a policy is
KINDS = (VIRTUAL_HOST, POLICY, EXCHANGE, QUEUE, BINDING)  # in the order in which they build on each other
_TEXT = json.JSONEncoder(ensure_ascii=False)  # one for all: each change of the topology is written with it


class RecordKey(NamedTuple):
    """Identity of a configuration record in the store."""

    kind: str
    key: str


class Record(NamedTuple):
    """What the store keeps under a RecordKey: JSON, and whether only in memory."""

    value: bytes
    transient: bool


class BoundIn(NamedTuple):
    """A binding with the place it has in the topology."""

    virtual_host: str
    source: str
    binding: Binding


def virtual_host_key(name: str) -> RecordKey:
    return RecordKey(VIRTUAL_HOST, name)


def virtual_host_record(host: Host) -> Record:
    return Record(_dump(asdict(host)), transient=False)


def read_virtual_host(value: bytes) -> Host:
    return _VIRTUAL_HOST.validate_json(value, strict=True)


def policy_key(policy: Policy) -> RecordKey:
    return RecordKey(POLICY, _join(policy.virtual_host, _OPERATORS if policy.operator else _USERS, policy.name))


def policy_record(policy: Policy) -> Record:
    table = asdict(policy)
    table["definition"] = policy.definition.decode()
    return Record(_dump(table), transient=False)


def read_policy(value: bytes) -> Policy:
    return _POLICY.validate_json(value, strict=True)


def policy_of_key(key: str) -> tuple[str, bool, str]:
    """The virtual host, whether it is an operator's, and the name."""
    virtual_host, whose, name = json.loads(key)
    return virtual_host, whose == _OPERATORS, name


def exchange_key(exchange: Exchange) -> RecordKey:
    return RecordKey(EXCHANGE, _join(exchange.virtual_host, exchange.name))


def exchange_record(exchange: Exchange) -> Record:
    return Record(_dump(asdict(exchange)), transient=not exchange.durable)


def read_exchange(value: bytes) -> Exchange:
    return _EXCHANGE.validate_json(value, strict=True)


def queue_key(queue: Queue) -> RecordKey:
    return RecordKey(QUEUE, _join(queue.virtual_host, queue.name))


def queue_record(queue: Queue) -> Record:
    """Without its policy, which follows from those of its virtual host."""
    table = {
        "id": queue.id,
        "virtual_host": queue.virtual_host,
        "name": queue.name,
        "partition": queue.partition,
        "durable": queue.durable,
        "exclusive_to": queue.exclusive_to,
        "auto_delete": queue.auto_delete,
        "arguments": queue.arguments,
        "type": queue.type,
    }
    table |= {"changed": queue.changed.decode()} if queue.changed else {}
    # Said only where it is something else than what releases before could say.
    former = of_connection(queue.exclusive_to)
    table |= {"owner": list(queue.owner)} if queue.owner != former else {}
    table |= {"until": list(queue.life.until)} if queue.life.until != former else {}
    table |= {"unused": queue.life.unused} if queue.life.unused.is_made else {}
    table |= {"maker": list(queue.life.maker)} if queue.life.maker else {}
    return Record(_dump(table), transient=not queue.durable)


def read_queue(value: bytes) -> Queue:
    stored = _QUEUE.validate_json(value, strict=True)
    former = of_connection(stored.exclusive_to)
    unused = Unused(stored.unused or (Unused.NO_CONSUMERS if stored.auto_delete else Unused.STAYS))
    return Queue(
        stored.id,
        stored.virtual_host,
        stored.name,
        stored.partition,
        durable=stored.durable,
        owner=_party(stored.owner) or former,
        life=Life(former if stored.until is None else _party(stored.until), unused, _party(stored.maker)),
        arguments=stored.arguments,
        type=stored.type,
        changed=stored.changed,
    )


def _party(stored: tuple[str, str] | None) -> Party:
    return Party(Scope(stored[0]), stored[1]) if stored else NOBODY


def binding_key(virtual_host: str, source: str, binding: Binding) -> RecordKey:
    # A queue is referred to by its id: a binding can never apply to a later queue of the same name.
    return RecordKey(BINDING, _join(virtual_host, source, *binding[:2], binding.arguments.decode()))


def binding_record(virtual_host: str, source: str, binding: Binding, *, durable: bool) -> Record:
    place = {"virtual_host": virtual_host, "source": source}
    return Record(_dump(place | binding._asdict()), transient=not durable)


def read_binding(value: bytes) -> BoundIn:
    stored = _BINDING.validate_json(value, strict=True)
    return BoundIn(
        stored.virtual_host, stored.source, Binding(stored.destination, stored.routing_key, stored.arguments)
    )


def _join(*parts: Destination) -> str:
    return _TEXT.encode(parts)


def _dump(table: dict[str, Any]) -> bytes:
    # Arguments are JSON already, kept as the text that decides whether two of them are equal.
    if "arguments" in table:
        table["arguments"] = table["arguments"].decode()
    return _TEXT.encode(table).encode()


@dataclass(frozen=True, slots=True)
class _Bound:
    virtual_host: str
    source: str
    destination: Destination
    routing_key: str
    arguments: bytes


@dataclass(frozen=True, slots=True)
class _Queue:
    id: int
    virtual_host: str
    name: str
    partition: int
    durable: bool = False
    exclusive_to: str = ""
    auto_delete: bool = False
    arguments: bytes = b""
    type: str = "classic"
    changed: bytes = b""
    owner: tuple[str, str] | None = None
    until: tuple[str, str] | None = None
    unused: str = ""
    maker: tuple[str, str] | None = None


# What is read is checked: a record of another shape is found here, and not wherever it is used.
_VIRTUAL_HOST, _EXCHANGE, _POLICY = TypeAdapter(Host), TypeAdapter(Exchange), TypeAdapter(Policy)
_QUEUE, _BINDING = TypeAdapter(_Queue), TypeAdapter(_Bound)
