"""The topology: takes changes, says their effects, and answers where messages go. The only state of the router."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial

from services.common.errors import SyntaxFault
from services.common.topology.definitions import Queue
from services.common.topology.message import Message
from services.common.topology.records import Record, RecordKey
from services.common.topology.route import Route, route
from services.router.topology.bind import bind, unbind
from services.router.topology.change_queue import change_queue
from services.router.topology.declare_exchange import declare_exchange
from services.router.topology.declare_queue import declare_queue
from services.router.topology.delete_exchange import delete_exchange
from services.router.topology.delete_queue import (
    close_connection,
    close_link,
    close_session,
    delete_queue,
    end_bound,
)
from services.router.topology.effects import Effects
from services.router.topology.kinds import Kinds
from services.router.topology.outcome import Outcome
from services.router.topology.policies import clear_policy, set_policy
from services.router.topology.replace_queue import replace_queue
from services.router.topology.replay import Change, replay
from services.router.topology.state import Stored, TopologyState, Unreadable
from services.router.topology.virtual_host import VirtualHost
from services.router.topology.virtual_hosts import create_virtual_host, delete_virtual_host
from services.rpc.router_pb2 import ChangeRequest

_CHANGES: Mapping[str, Callable[[TopologyState, ChangeRequest, Effects], Outcome]] = {
    "declare_exchange": declare_exchange,
    "delete_exchange": delete_exchange,
    "declare_queue": declare_queue,
    "delete_queue": delete_queue,
    "bind": bind,
    "unbind": unbind,
    "create_virtual_host": create_virtual_host,
    "delete_virtual_host": delete_virtual_host,
    "close_connection": close_connection,
    "close_session": close_session,
    "close_link": close_link,
    "set_policy": set_policy,
    "clear_policy": clear_policy,
    "change_queue": change_queue,
    "replace_queue": replace_queue,
}


class Topology:
    """Of all virtual hosts. A change that raises has changed nothing and has no effects."""

    def __init__(
        self,
        kinds: Kinds,
        partitions: int,
        new_id: Callable[[], int],
        new_name: Callable[[], str],
        most_queues: Callable[[str], int | None] = lambda _: None,
    ) -> None:
        self._create = partial(TopologyState, kinds, partitions, new_id, new_name, most_queues)
        self._state = self._create()

    @property
    def virtual_hosts(self) -> Mapping[str, VirtualHost]:
        """By name; to be looked at only."""
        return self._state.virtual_hosts

    @property
    def queues(self) -> Mapping[int, Queue]:
        """By id; to be looked at only."""
        return self._state.queues

    @property
    def owners(self) -> Iterable[str]:
        """The connections with which queues go, or with which whoever made them goes."""
        return self._state.bound_to

    def change(self, request: ChangeRequest, effects: Effects) -> Outcome:
        """Carries out one request and adds to `effects`; raises BrokerError as each kind of change says."""
        kind = request.WhichOneof("change")
        if kind is None:
            raise SyntaxFault("the request asks for no change")
        return _CHANGES[kind](self._state, request, effects)

    def close(self, connections: Iterable[str], effects: Effects) -> None:
        """These connections are gone, and with them the queues that go with them."""
        for connection in list(connections):
            end_bound(self._state, connection, effects)

    def route(
        self, virtual_host: str, exchange: str, key: str, message: Message, more_keys: Sequence[str] = ()
    ) -> Route | None:
        """Where a message goes; None when there is no such virtual host."""
        host = self._state.virtual_hosts.get(virtual_host)
        return route(host.sources, exchange, key, message, more_keys) if host else None

    def restore(self, stored: Iterable[Stored]) -> list[Unreadable]:
        """Is what the records that `records.KINDS` names say, and nothing else; gives those that are left out."""
        self._state = self._create()
        return self._state.restore(stored)

    def replay(self, changes: Iterable[Change]) -> list[Unreadable]:
        """Takes over what another router decided, as its records say it; gives those that are left out."""
        return replay(self._state, changes)

    def all_records(self) -> Iterator[tuple[RecordKey, Record]]:
        """Everything that the store should hold."""
        return self._state.all_records()
