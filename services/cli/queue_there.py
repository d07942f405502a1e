"""Whether there is a queue to be followed."""

from __future__ import annotations

from services.common.clients.dry_run import DryRunClient
from services.common.clients.objects import ObjectsClient
from services.common.config import Settings
from services.common.errors import NotFound, Unavailable
from services.rpc import objects_pb2 as pb


async def is_there(settings: Settings, virtual_host: str, queue: str) -> bool:
    """A queue of that name, or one at least that fits the pattern; also where nobody can be asked."""
    try:
        if any(wild in queue for wild in "*?"):
            return await _any_fits(settings.address_of("mgmt"), virtual_host, queue)
        async with DryRunClient(settings.address_of("router")) as client:
            return queue in (await client.route(virtual_host, "", queue, {})).queues
    except NotFound:
        return False
    except Unavailable:  # lines may come from the bus all the same
        return True


async def _any_fits(address: str, virtual_host: str, pattern: str) -> bool:
    asked = pb.ListRequest(kind=pb.QUEUE, virtual_host=virtual_host, fits={"name": pattern}, most=1)
    async with ObjectsClient(address) as client:
        return any([bool(page.rows) async for page in client.list(asked)])
