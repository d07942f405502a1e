"""What management keeps of objects, when others delete them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from collections.abc import Set as AbstractSet
from typing import Any

from pamqp import commands

from services.common.clients.store import StoreClient
from services.common.clients.virtual_hosts import VirtualHostsClient
from services.mgmt.service import Service
from services.mgmt.tree.forgetting import Forgetting
from services.mgmt.tree.mirror import Mirror
from services.rpc.store_pb2 import Record, Records
from tests.support.rest import asking
from tests.unit.mgmt.tree.conftest import HOST, Managed

KEPT = "configured_object"


async def _until_kept(managed: Managed, names: AbstractSet[str]) -> None:
    found: set[str] = set()
    store = StoreClient(managed.house.address_of("store"))
    for _ in range(100):
        found = {json.loads(_about(each))[-2] for each in await store.list_records([KEPT, "preference"])}
        if found == names:
            break
        await asyncio.sleep(0.02)
    await store.close()
    assert found == names


async def _permitted(managed: Managed) -> list[str]:
    """Where anna may do something."""
    return [each["vhost"] for each in (await managed.ask("/api/users/anna/permissions"))[1]]


def _about(record: Record) -> str:
    found: str = record.key if record.kind == KEPT else json.loads(record.value)["object"]
    return found


class Slow(StoreClient):
    """A store that takes its time to delete."""

    def __init__(self) -> None:
        self.may = asyncio.Event()
        self.deleted: list[str] = []
        self.fault: Exception | None = None

    async def put_records(self, puts: Any = (), deletes: Any = (), **_: Any) -> int:
        await self.may.wait()
        if fault := self.fault:
            self.fault = None
            raise fault
        self.deleted += [each.key for each in deletes]
        return 1


def _of(name: str, description: str) -> Record:
    key = json.dumps(["Exchange", "/", "/", name, ""])
    return Record(kind=KEPT, key=key, value=json.dumps({"description": description}).encode())


def _exchange(name: str, *, deleted: bool = False) -> Record:
    value = json.dumps({"virtual_host": "/", "name": name}).encode()
    return Record(kind="exchange", key=json.dumps(["/", name]), value=value, deleted=deleted)


async def _told(*batches: Records) -> tuple[Mirror, Slow]:
    """To a mirror, one batch after the other, while the store stands still; then it goes on."""
    mirror, store = Mirror(), Slow()
    forgetting = asyncio.ensure_future(Forgetting(mirror, store).follow())

    async def tell() -> AsyncIterator[Records]:
        for each in batches:
            yield each
            await asyncio.sleep(0.01)

    await mirror.follow(tell())
    store.fault = ValueError("a fault of the first")
    store.may.set()
    await asyncio.sleep(0.01)
    forgetting.cancel()
    return mirror, store


async def test_what_is_kept_of_the_next() -> None:
    """Stays, though the former of its name is forgotten after it is there; and one fault keeps nothing else."""
    host = Record(kind="virtual_host", key="/", value=b"{}")
    there = [
        host,
        _exchange("a"),
        _exchange("b"),
        _exchange("c"),
        _of("a", "x"),
        _of("b", "of the first"),
        _of("c", "x"),
    ]
    mirror, store = await _told(
        Records(records=there, snapshot=True, last=True),
        Records(records=[_exchange("a", deleted=True)]),  # its forgetting fails
        Records(records=[_exchange("b", deleted=True), _exchange("c", deleted=True)]),
        Records(records=[_exchange("b"), _of("b", "of the next")]),
    )
    assert store.deleted == [_of("c", "").key]
    assert mirror.tables[KEPT][_of("b", "").key].value == {"description": "of the next"}


async def test_preferences(managed: Managed) -> None:
    """At an exchange, a queue, a virtual host or a user are deleted with it, also by a client."""
    assert (await managed.ask("/api/vhosts/v", "guest:guest", "PUT"))[0] == 201
    assert (await managed("PUT", "user/internal/bob", {"password": "one", "description": "the first"}))[0] == 201
    assert (await managed("PUT", f"exchange/{HOST}/e", {"type": "topic"}))[0] == 201
    for path in (f"queue/{HOST}/q", "queue/v/v/inside", f"queue/{HOST}/other"):
        assert (await managed("PUT", path, {}))[0] == 201
    where = (f"exchange/{HOST}/e", f"queue/{HOST}/q", "virtualhost/v/v", "queue/v/v/inside", "user/internal/bob")
    for path in (*where, f"queue/{HOST}/other"):
        assert (await managed("PUT", f"{path}/userpreferences/X-a/mine", {}))[0] == 200
    await _until_kept(managed, {"e", "q", "inside", "other", "v", "bob"})
    for path in ("exchanges/%2F/e", "queues/%2F/q", "vhosts/v", "users/bob"):
        assert (await managed.ask(f"/api/{path}", "guest:guest", "DELETE"))[0] == 204
    await _until_kept(managed, {"other"})
    assert (await managed("PUT", f"exchange/{HOST}/e", {"type": "fanout"}))[0] == 201
    assert await managed("GET", f"exchange/{HOST}/e/userpreferences") == (200, {})


async def test_what_others_delete(managed: Managed) -> None:
    """Leaves nothing behind, over any protocol: the next of its name has no description, and no record stays."""
    said = {"description": "of the first"}
    assert (await managed("PUT", f"exchange/{HOST}/e", {"type": "direct", **said}))[0] == 201
    for path in (f"queue/{HOST}/q", f"queue/{HOST}/other"):
        assert (await managed("PUT", path, said))[0] == 201
    client = await managed.house.connect()
    await client.call(1, commands.Exchange.Delete(exchange="e"), commands.Exchange.DeleteOk)
    await client.call(1, commands.Queue.Delete(queue="q"), commands.Queue.DeleteOk)
    await _until_kept(managed, {"other"})
    await client.call(1, commands.Exchange.Declare(exchange="e", durable=True), commands.Exchange.DeclareOk)
    for _ in range(50):
        status, told = await managed("GET", f"exchange/{HOST}/e")
        if status == 200:
            break
    assert "description" not in told
    assert (await managed("GET", f"queue/{HOST}/other"))[1]["description"] == "of the first"


async def test_a_virtual_host_made_again_while_nobody_looks(managed: Managed) -> None:
    """Another one of that name has no description, nor have its exchanges; no user keeps its permissions there."""
    paths, said = ("virtualhost/work/work", "exchange/work/work/amq.topic"), {"description": "of the first"}
    assert (await managed("PUT", paths[0], said))[0] == 201
    assert (await managed("POST", paths[1], said))[0] == 200
    assert [(await managed("GET", path))[1]["description"] for path in paths] == ["of the first"] * 2
    terms = {"configure": ".*", "write": ".*", "read": ".*"}
    for path, about in (
        ("users/anna", {"password": "secret", "tags": ""}),
        *((f"permissions/{host}/anna", terms) for host in ("work", "%2F")),
    ):
        assert (await managed.ask(f"/api/{path}", "guest:guest", "PUT", about))[0] == 201
    await managed.mgmt.stop()
    async with VirtualHostsClient(managed.house.address_of("router")) as hosts:
        await hosts.delete("work")
        await hosts.create("work")
    again = Service(managed.house.settings)
    await again.start()
    late = managed._replace(mgmt=again, ask=asking(again.http_port))
    assert [(await late("GET", path))[1].get("description") for path in paths] == [None] * 2
    await _until_kept(late, set())
    async with asyncio.timeout(5):
        while await _permitted(late) != ["/"]:
            await asyncio.sleep(0.02)
    await again.stop()
