"""What is asked of a connection itself: signing in, opening, sessions, the end. It knows best how to do that."""

from __future__ import annotations

from typing import Protocol

from services.common.errors import BrokerError
from services.common.runtime import Tasks
from services.common.topology.slots import SlotName, slot_of
from services.gateway import vocabulary as v
from services.gateway.sessions.broker import Broker
from services.gateway.sessions.permitted import Permitted
from services.rpc import queue_pb2


class SignIn(Protocol):
    """How a client says who it is."""

    def authenticate(self, request: v.Authenticate) -> None: ...
    def update(self, request: v.UpdateSecret) -> None: ...


class Client(Protocol):
    """A connection, as far as requests go that concern all of it."""

    name: str
    virtual_host: str

    @property
    def login(self) -> SignIn: ...

    @property
    def permitted(self) -> Permitted: ...
    @property
    def broker(self) -> Broker: ...
    @property
    def tasks(self) -> Tasks: ...
    def tell(self, event: str, **more: object) -> None: ...
    def open(self, request: v.Open) -> None: ...
    def open_session(self, request: v.OpenSession) -> None: ...
    def closes(self, request: v.Close) -> None: ...
    def will_close(self, request: v.EndSessions) -> None: ...
    def fail(self, request: v.Request, error: BrokerError) -> None: ...


def authenticate(client: Client, request: v.Authenticate) -> None:
    client.login.authenticate(request)


def update_secret(client: Client, request: v.UpdateSecret) -> None:
    client.login.update(request)


def open_connection(client: Client, request: v.Open) -> None:
    client.open(request)


def open_session(client: Client, request: v.OpenSession) -> None:
    client.open_session(request)


def close(client: Client, request: v.Close) -> None:
    client.closes(request)


def end_sessions(client: Client, request: v.EndSessions) -> None:
    client.will_close(request)


def drop_queue(client: Client, request: v.DropQueue) -> None:
    client.tasks.start(_drop_queue(client, request.name), name="drop a queue")


async def _drop_queue(client: Client, name: str) -> None:
    definition = client.broker.topology.by_name.get(SlotName(client.virtual_host, name))
    if definition is None or definition.exclusive_to != client.name:
        return
    try:
        queue_id = slot_of(definition)
        delete = queue_pb2.DeleteRequest(queue_id=queue_id)
        await client.broker.asking.ask(queue_id, delete=delete)
    except BrokerError as error:
        client.tell("a queue of a link that has ended stays until its connection ends", error=error.text)
