"""What is asked of a connection itself: signing in, opening, sessions, the end. It knows best how to do that."""

from __future__ import annotations

from typing import Protocol

from services.common.errors import BrokerError
from services.gateway import vocabulary as v
from services.gateway.sessions.permitted import Permitted


class SignIn(Protocol):
    """How a client says who it is."""

    def authenticate(self, request: v.Authenticate) -> None: ...
    def update(self, request: v.UpdateSecret) -> None: ...


class Client(Protocol):
    """A connection, as far as requests go that concern all of it."""

    @property
    def login(self) -> SignIn: ...
    @property
    def permitted(self) -> Permitted: ...
    def open(self, request: v.Open) -> None: ...
    def open_session(self, request: v.OpenSession) -> None: ...
    def closes(self, request: v.Close) -> None: ...
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
