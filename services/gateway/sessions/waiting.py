"""Requests of a session that wait behind one that is not done."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING

from services.common.message.weight import BESIDE, weight
from services.gateway.vocabulary import Echo, FindBinding, FindNode, Get, Publish, Request

if TYPE_CHECKING:
    from services.gateway.sessions.client import Client

_WAITING_BYTES = 1 << 20  # of requests that wait; beyond, the connection is read no further
_REQUEST_BYTES = 16 << 10  # that a request counts for: it is no use to have hundreds of them wait
_PUBLISH_BYTES = 2 << 10  # that a publish takes besides its messages

_QUESTIONS = (Echo, FindBinding, FindNode, Get)
"""Beside passive declarations."""


def may_send(connection: Client) -> bool:
    """Whether not too much waits of all its sessions."""
    return connection.waiting <= _WAITING_BYTES


class WaitingRequests:
    """Of one session, in their order; what they weigh counts for the `connection`."""

    __slots__ = ("_connection", "_requests")

    def __init__(self, connection: Client) -> None:
        self._connection = connection
        self._requests: deque[Request] = deque()

    def __bool__(self) -> bool:
        return bool(self._requests)

    def __iter__(self) -> Iterator[Request]:
        return iter(self._requests)

    def add(self, request: Request) -> bool:
        """Puts it behind the others; gives whether the connection may send more."""
        self._requests.append(request)
        self._connection.waiting += _weight(request)
        return may_send(self._connection)

    @property
    def first(self) -> Request:
        """That which has waited for longest."""
        return self._requests[0]

    def next(self) -> Request:
        """Takes out the first."""
        request = self._requests.popleft()
        self._connection.waiting -= _weight(request)
        return request

    def forget(self, but: type[Request] | tuple[()] = (), link: int = 0) -> None:
        """Drops those of a link, or with 0 all, `but` some."""

        def stays(each: Request) -> bool:
            return isinstance(each, but) or link not in (0, each.link)

        self._connection.waiting -= sum(_weight(each) for each in self._requests if not stays(each))
        self._requests = deque(filter(stays, self._requests))

    def forget_questions(self) -> None:
        """Drops those at the end that only ask, whose client is gone; one that others stand behind may concern them."""
        while self._requests and _only_asks(self._requests[-1]):
            self._connection.waiting -= _weight(self._requests.pop())

    def forget_behind(self) -> None:
        """Drops all but the first."""
        while len(self._requests) > 1:
            self._connection.waiting -= _weight(self._requests.pop())


def _only_asks(request: Request) -> bool:
    return isinstance(request, _QUESTIONS) or getattr(request, "passive", False)


def _weight(request: Request) -> int:
    """About how much memory a waiting request takes."""
    if not isinstance(request, Publish):
        return _REQUEST_BYTES
    return _PUBLISH_BYTES + weight(request.properties, request.bodies) + BESIDE * len(request.bodies)
