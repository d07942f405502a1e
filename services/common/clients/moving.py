"""Partitions whose owner is another one: it is sent nothing while a former one may still refuse what it has."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from services.common.clients.partition_table import Owner
    from services.common.clients.queue_link import QueueLink


class Moving:
    """Whose answers are waited for, for each partition; `links` are those to all members."""

    def __init__(self, links: Mapping[str, QueueLink]) -> None:
        self._links = links
        self._marks: dict[int, dict[QueueLink, int]] = {}  # partition → whose answers up to which mark are waited for
        self._last_owners: dict[int, tuple[str, int]] = {}  # partition → member and epoch

    def __len__(self) -> int:
        return len(self._marks)

    def __contains__(self, partition: int) -> bool:
        return partition in self._marks

    def wait_for(self, partition: int, link: QueueLink) -> None:
        """What was sent there so far is answered first."""
        self._marks.setdefault(partition, {})[link] = link.mark()

    def is_over(self, partition: int) -> bool:
        """Whether all of that is answered."""
        if partition in self._marks:
            if not all(link.passed(mark) for link, mark in self._marks[partition].items()):
                return False
            del self._marks[partition]
        return True

    def follow(self, owners: Mapping[int, Owner]) -> dict[QueueLink, set[int]]:
        """Takes note of who owns what now; gives what has moved away from links that stand."""
        moved: dict[QueueLink, set[int]] = defaultdict(set)
        for partition, owner in owners.items():
            now = owner.member, owner.epoch
            before = self._last_owners.get(partition, now)
            former = self._links.get(before[0])
            if former and before != now and former.up:
                # One that it moved away from before, or that has it again, may not have answered either.
                self.wait_for(partition, former)
                moved[former].add(partition)
            self._last_owners[partition] = now
        return moved
