"""mgmt as a process: users, the health of the stack, the record of messages and look-ups, over gRPC and HTTP."""

from __future__ import annotations

import uuid
from collections.abc import Collection
from functools import cached_property, partial
from typing import TYPE_CHECKING

import structlog

from services.common.access.records import VIRTUAL_HOST
from services.common.audit.acting import act_for
from services.common.audit.audit import Audit
from services.common.authentication.authenticator import Authenticator
from services.common.bus.address import bus_address
from services.common.clients.access import KINDS as ACCESS_KINDS
from services.common.clients.access import Access
from services.common.clients.capture import CaptureRules
from services.common.clients.dry_run import DryRunOfAny
from services.common.clients.partition_table import ROLE, PartitionTable
from services.common.clients.ports import Ports
from services.common.clients.routers import ROLE as ROUTER
from services.common.clients.routers import Routers
from services.common.clients.store import StoreClient
from services.common.clients.stores import ROLE as STORE
from services.common.clients.stores import Stores
from services.common.config import Settings
from services.common.errors import Unavailable
from services.common.first_user import FirstUser, first_user
from services.common.grpc_server import Server
from services.common.metrics.exporting import Exporting
from services.common.metrics.meters import Meters
from services.common.restored import RECORD_KIND as RESTORED_KIND
from services.common.runtime import Tasks
from services.common.secrets_key import secrets_note
from services.mgmt.access.grants import Grants
from services.mgmt.access.guard import Guard
from services.mgmt.access.tested import Tester
from services.mgmt.beginning import begin
from services.mgmt.certificates.expiry import Expiry
from services.mgmt.front import Application, Front
from services.mgmt.handler import Handler
from services.mgmt.http.server import HttpServer
from services.mgmt.in_queues.messages import QueueMessages
from services.mgmt.ledger.filer import Filer
from services.mgmt.ledger.probe import bus_trouble
from services.mgmt.lookup.jaeger import Jaeger
from services.mgmt.lookup.lookup import UNTIL_IT_IS_THERE, LookUp
from services.mgmt.lookup.present import Present
from services.mgmt.metrics.gather import Addresses, Gathering, ProcessMetrics
from services.mgmt.metrics.measured import measure_doors, measure_health, measure_mgmt
from services.mgmt.metrics.requests import CountedRequests
from services.mgmt.objects_handler import ObjectsHandler
from services.mgmt.owners import Owners
from services.mgmt.ports_note import ports_note
from services.mgmt.providers import Providers
from services.mgmt.rabbitmq.changes import Changes
from services.mgmt.rabbitmq.definitions import Definitions
from services.mgmt.rabbitmq.objects import Objects
from services.mgmt.rabbitmq.sections import Broker
from services.mgmt.restored import RestoredNote
from services.mgmt.roll import GATEWAYS, Roll
from services.mgmt.spans_note import spans_note
from services.mgmt.stack_health import StackHealth
from services.mgmt.tree.counts import Collector
from services.mgmt.tree.house import House
from services.mgmt.tree.purging import Purging
from services.mgmt.tree.topology import Topology
from services.mgmt.users import Users
from services.rpc.mgmt_pb2_grpc import add_MgmtServicer_to_server
from services.rpc.objects_pb2_grpc import add_ObjectsServicer_to_server

if TYPE_CHECKING:
    from services.mgmt.node.node import Node
    from services.mgmt.tree.tree import Tree

NAME = "hopline.mgmt.Mgmt"
MANAGEMENT_NODE = "$management"
"""By which a user was denied something, for the audit log."""
NO_LEDGER = "HOPLINE_LEDGER is false, so messages are not put on record"
OBJECTS_NAME = "hopline.objects.Objects"

log = structlog.get_logger()


class Service:
    """Started and stopped by the command line."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._tasks = Tasks()
        self._roll = Roll()

    async def start(self) -> None:
        """Returns when there are users; health is told from the beginning. Raises CannotStart for a port in use."""
        settings = self._settings
        first = first_user(settings)
        instance = f"mgmt-{uuid.uuid4().hex[:12]}"
        self._audit = Audit(settings, "mgmt", instance)
        self._audit.start()
        self._authenticator = Authenticator(settings, audit=self._audit)
        table = PartitionTable()
        self._http = HttpServer(settings)
        self._server = Server(settings.address_of("mgmt"), [NAME, OBJECTS_NAME])
        self._store = StoreClient(settings.address_of("store"))
        users = Users(self._store, settings.sasl_mechanisms, self._authenticator.sealing)
        self._providers = Providers(self._store, settings)
        self._filer = Filer(settings, self._store, instance)
        self._filer.start()
        self._measure(instance)
        self._expiry = Expiry(settings, self._store)
        self._tasks.start(self._expiry.follow(), name="follow certificates")
        note = RestoredNote()
        self._look_up = self._create_look_up(note, Owners(table))
        access = Access(settings.access_control)
        grants, guard, tester = Grants(self._store), Guard(access, self._audit), Tester(access, self._store)
        self._routers, self._stores = Routers(self._store, NAME), Stores()
        self._house = self._create_house(users, grants, table)
        self._hear_all(table)
        self._broker = Broker(self._house, Objects(self._house), Changes(self._house))
        node = partial(self._node_for, Guard(access, self._audit, MANAGEMENT_NODE))
        others = guard, self._look_up, Definitions(self._broker), node
        add_MgmtServicer_to_server(Handler(users, self._providers, grants, tester, *others), self._server.grpc)
        add_ObjectsServicer_to_server(ObjectsHandler(self._broker, guard), self._server.grpc)
        await self._server.listen()
        self._tasks.start(table.follow(self._store.watch_leases(ROLE)), name="follow leases")
        self._tasks.start(self._stores.follow(self._store.watch_leases(STORE)), name="follow store processes")
        self._routers.start()
        self._keep_roll(table)
        self._tasks.start(note.follow(self._store.watch_records([RESTORED_KIND])), name="follow restores")
        health = StackHealth(
            settings, table, self._roll, notes=self._notes, restored=lambda: note.text, stores=self._stores
        )
        measure_health(self._meters, health)
        self._tasks.start(access.follow(self._store.watch_records(ACCESS_KINDS)), name="follow access")
        front = Front(health, lambda: self._application(guard, grants, tester, users, health))
        self._http.start(CountedRequests(front, self._meters))
        await _seed(users, grants, first, settings.address_of("store"))
        self._tasks.start(grants.follow_virtual_hosts(self._store.watch_records([VIRTUAL_HOST])), name="follow vhosts")
        await self._server.ready()
        for remedy in secrets_note(settings).values():
            log.warning("a copy of the data folder is enough to read the secrets in it", do=remedy)
        log.info("mgmt ready", http_port=self.http_port)

    def _create_look_up(self, note: RestoredNote, owners: Owners) -> LookUp:
        settings = self._settings
        bus = bus_address(settings) if settings.ledger else ""
        return LookUp(
            settings.data / "ledger",
            self._filer.pending,
            trouble=lambda: self._filer.trouble if settings.ledger else NO_LEDGER,
            restored=lambda: note.last,
            spans=[folder for folder in (settings.spans_folder, settings.spans_others) if folder],
            jaeger=Jaeger(settings.jaeger_url, settings.jaeger_address),
            present=Present(partial(bus_trouble, bus), owners.silent, self._died),
            patience=UNTIL_IT_IS_THERE if bus else (),
        )

    def _died(self) -> Collection[str]:
        """Gateways of which the record does not know it yet."""
        return self._filer.unended("gateway") & self._roll.gone("gateway")

    def _keep_roll(self, table: PartitionTable) -> None:
        roll, routers, stores = self._roll, self._routers, self._stores
        stores.listeners.append(lambda: roll.update(STORE, stores.members))
        table.listeners.append(lambda: roll.update(ROLE, table.members))
        routers.listeners.append(lambda: roll.update(ROUTER, routers.members()))
        self._tasks.start(roll.follow_gateways(self._store.watch_records(GATEWAYS)), name="follow gateways")

    def _measure(self, instance: str) -> None:
        self._meters = Meters("mgmt", instance)
        self._exporting = Exporting(self._meters)
        self._exporting.start()
        measure_mgmt(self._meters, self._audit, self._filer)
        measure_doors(self._meters, self._http.doors)

    def _hear_all(self, table: PartitionTable) -> None:
        """What they count, when somebody asks, and what they log, while a logger wants it."""
        addresses, ready = self._addresses_of(table), self._house.ready
        self._gathering = Gathering(addresses, self._meters, ready)
        self._house.loggers.start(addresses, ready)

    def _addresses_of(self, table: PartitionTable) -> Addresses:
        house, routers, stores = self._house, self._routers, self._stores
        store = {"store": self._settings.address_of("store")}
        return lambda: {
            "store": stores.members or store,
            "router": routers.members(),
            "queue": table.members,
            "gateway": dict(house.gateways.addresses()),
        }

    def _application(
        self, guard: Guard, grants: Grants, tester: Tester, users: Users, health: StackHealth
    ) -> Application:
        # Not before the first request for it: see Front.
        from services.mgmt.rest.application import application  # noqa: PLC0415
        from services.mgmt.rest.basic import Doors  # noqa: PLC0415
        from services.mgmt.rest.own_routes import Shown  # noqa: PLC0415
        from services.mgmt.rest.sign_in import SignIn  # noqa: PLC0415

        doors = Doors(SignIn(self._authenticator, self._store), guard, self._settings.metrics_token_file)
        house, rules = self._house, CaptureRules(self._store)
        others = grants, tester, self._providers, users, self._gathering
        shown = Shown(self._look_up, house.dry_runs, rules, house.ports, *others)
        return application(doors, shown, health, self._tree, self._broker)

    @cached_property
    def _tree(self) -> Tree:
        from services.mgmt.tree.tree import Tree  # noqa: PLC0415 - as above

        return Tree(self._house)

    def _node_for(self, guard: Guard) -> Node:
        """Of virtual hosts: the same tree."""
        from services.mgmt.node.node import Node  # noqa: PLC0415 - as above

        return Node(self._tree, guard)

    def _create_house(self, users: Users, grants: Grants, table: PartitionTable) -> House:
        store = self._store
        topology, purging = Topology(self._routers, self._audit), Purging(store, table)
        others = users, grants, self._providers, Ports(store, self._providers.of_file), self._audit, self._stores
        sources = self._gather, DryRunOfAny(self._routers), QueueMessages(store, table)
        return House(self._settings, store, topology, Collector(table), purging, *others, *sources)

    async def _gather(self, *, per_object: bool, names: Collection[str]) -> list[ProcessMetrics]:
        return await self._gathering.gather(per_object=per_object, names=names)

    async def stop(self) -> None:
        """Ends what is under way, then leaves the store."""
        await self._http.stop()
        await self._server.stop()
        await self._tasks.stop()
        await self._house.stop()
        await self._routers.stop()
        await self._look_up.stop()
        await self._filer.stop()
        await self._exporting.stop()
        await self._authenticator.stop()
        await self._audit.stop()
        await self._store.close()

    def _notes(self) -> dict[str, str]:
        notes = {"ledger": f"not filed: {self._filer.trouble}"} if self._filer.trouble else {}
        if troubles := self._authenticator.troubles():
            notes["providers"] = "; ".join(f"{name}: {text}" for name, text in sorted(troubles.items()))
        notes |= ports_note(self._roll.said_of_ports)
        return notes | self._expiry.notes() | spans_note(self._settings) | secrets_note(self._settings)

    @property
    def http_port(self) -> int:
        """The HTTP port, also where the settings said 0."""
        return self._http.port


async def _seed(users: Users, grants: Grants, first: FirstUser, address: str) -> None:
    while True:
        try:
            act_for("mgmt, at the first start")
            return await begin(users, grants, first)
        except Unavailable as error:
            log.warning(
                "the first user is not made yet",
                reason=error.text,
                do=f"see that the store runs, and is at {address} (HOPLINE_STORE_ADDRESS)",
            )
