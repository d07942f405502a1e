"""Which queue processes answer."""

from __future__ import annotations

from services.common.clients.partition_table import PartitionTable
from services.mgmt.owners import Owners


async def test_silent() -> None:
    """One that does not serve, one that is no member any more, and one where another has taken its place."""
    table = PartitionTable(members={"well": "a", "hangs": "b", "dead": "c", "its-heir": "c"})

    async def check(address: str, _seconds: float) -> bool:
        return address != "b"

    owners = Owners(table, check)
    assert await owners.silent({"well", "hangs", "dead", "forgotten"}) == {"hangs", "dead", "forgotten"}
    assert await owners.silent({"well"}) == set()
