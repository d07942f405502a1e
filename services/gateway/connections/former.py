"""Which virtual hosts have limits on record that are a former one's of the same name.

mgmt deletes those, when it can: until then they do not count, as permissions do.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial
from typing import TYPE_CHECKING, Final

from services.common.access.records import FILED_FOR, VIRTUAL_HOST, incarnation_in, is_former
from services.common.containment import for_each

if TYPE_CHECKING:
    from services.rpc.store_pb2 import Record, Records

KINDS: Final = (VIRTUAL_HOST, FILED_FOR)
_Ids = dict[tuple[str, str], int]
"""By kind and name."""


class Former:
    """As one gateway knows it."""

    def __init__(self) -> None:
        self._ids: _Ids = {}

    def has_limits(self, virtual_host: str) -> bool:
        """Whether what is on record for that name is not the present virtual host's."""
        return is_former(self._ids.get((FILED_FOR, virtual_host)), self._ids.get((VIRTUAL_HOST, virtual_host), 0))

    async def follow(self, records: AsyncIterator[Records]) -> None:
        """Applies a watch of records of KINDS; ends with it."""
        fresh: _Ids = {}
        async for batch in records:
            into = fresh if batch.snapshot else self._ids
            for_each("reading of which virtual host limits are", batch.records, partial(_apply, into))
            if batch.snapshot and batch.last:
                self._ids, fresh = fresh, {}


def _apply(into: _Ids, record: Record) -> None:
    into.pop((record.kind, record.key), None)
    if not record.deleted:
        into[record.kind, record.key] = incarnation_in(record.value)
