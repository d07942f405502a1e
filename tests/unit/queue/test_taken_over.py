"""What a queue process answers who asks whether it serves the partitions that it owns."""

from __future__ import annotations

from functools import partial

from services.common.clients.partition_table import Owner
from services.common.grpc_channel import is_serving
from services.common.partition import TAKEN_OVER
from services.queue.partitions.partition import PartitionState
from tests.support.queue_house import House


async def test_it_reads_one_back(house: House) -> None:
    """As long as it has not begun with one of them, it says no, and that it serves all the same."""
    address = house.settings.address_of("queue-1")
    has_taken_over = partial(is_serving, address, what=TAKEN_OVER)
    assert await has_taken_over()
    one = house.queues["queue-1"]._host.registry.partitions[3]
    one.state = PartitionState.RECOVERING
    assert (await has_taken_over(), await is_serving(address)) == (False, True)
    one.state = PartitionState.SERVING
    assert await has_taken_over()


async def test_it_has_not_heard_yet(house: House) -> None:
    """Of one that the leases give it, in a term that it does not know, it is no owner that others may rely on."""
    queue = house.queues["queue-1"]
    owners, later = dict(queue._table.owners), queue._table.owners[3].epoch + 1
    has_taken_over = partial(is_serving, house.settings.address_of("queue-1"), what=TAKEN_OVER)
    assert await has_taken_over()
    queue._table.owners = {**owners, 3: Owner(queue._member, "", later)}
    assert not await has_taken_over()
    queue._table.owners = {**owners, 3: Owner("queue-2-x", "", later)}
    assert await has_taken_over()


async def test_one_of_a_former_release(house: House) -> None:
    """Does not know the question, and is taken to have taken over; who does not answer at all is not."""
    assert await is_serving(house.settings.address_of("router"), what=TAKEN_OVER)
    assert not await is_serving(house.settings.address_of("queue-9"), what=TAKEN_OVER)
