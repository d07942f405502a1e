"""Partitions that change owners: the new owner is sent nothing while a former owner may still refuse messages."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from services.common.clients.partition_table import Owner
    from services.common.clients.queue_link import QueueLink


class Moving:
    """The former owners whose answers each partition waits for; `links` are those to all members."""

    def __init__(self, links: Mapping[str, QueueLink]) -> None:
        self._links = links
        self._marks: dict[int, dict[QueueLink, int]] = {}  # partition → former owners, each with the mark to reach
        self._last_owners: dict[int, tuple[str, int]] = {}  # partition → member and epoch

    def __len__(self) -> int:
        return len(self._marks)

    def __contains__(self, partition: int) -> bool:
        return partition in self._marks

    def wait_for(self, partition: int, link: QueueLink) -> None:
        """The partition waits until everything sent on `link` so far is answered."""
        self._marks.setdefault(partition, {})[link] = link.mark()

    def is_over(self, partition: int) -> bool:
        """Whether all that the partition waits for is answered."""
        if partition in self._marks:
            if not all(link.passed(mark) for link, mark in self._marks[partition].items()):
                return False
            del self._marks[partition]
        return True

    def follow(self, owners: Mapping[int, Owner]) -> dict[QueueLink, set[int]]:
        """Takes note of the owners; gives, for each link that is up, the partitions that moved away from it."""
        moved: dict[QueueLink, set[int]] = defaultdict(set)
        for partition, owner in owners.items():
            now = owner.member, owner.epoch
            before = self._last_owners.get(partition, now)
            former = self._links.get(before[0])
            if former and before != now and former.up:
                # An owner from before, or one that has the partition again, may not have answered either.
                self.wait_for(partition, former)
                moved[former].add(partition)
            self._last_owners[partition] = now
        return moved
