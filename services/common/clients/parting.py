"""What the end of a link means to an operator: the queue process was lost, it left in good order, or we did."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import structlog

if TYPE_CHECKING:
    from services.common.clients.outbound import Attempt
    from services.common.clients.partition_table import Owner
    from services.common.clients.queue_link import QueueLink

log = structlog.get_logger()


class Partings:
    """Knows the partitions that each process has not handed over: a process that ends without any is no loss."""

    def __init__(self) -> None:
        self.leaving = False  # this process is ending, and closes its links
        self._owned: dict[int, tuple[str, int]] = {}  # partition → member and epoch
        self._handed: dict[str, set[int]] = defaultdict(set)  # member → partitions that it says are no longer its own
        self.lost: set[str] = set()  # members that are called again and again until their leases end

    def know(self, owners: Mapping[int, Owner]) -> None:
        """Takes a new table, after its departed members have been dropped."""
        before, self._owned = self._owned, {number: (owner.member, owner.epoch) for number, owner in owners.items()}
        for number, (member, epoch) in self._owned.items():
            if before.get(number) != (member, epoch):
                self._handed[member].discard(number)
        living = {member for member, _ in self._owned.values()}
        for member in self._handed.keys() - living:
            del self._handed[member]
        self.lost &= living

    def handed_over(self, link: QueueLink, partitions: Iterable[int]) -> None:
        """The process at the other end says that it no longer owns these."""
        self._handed[link.member].update(partitions)

    def connected(self, link: QueueLink) -> None:
        """Logs that a link is up; not of a process that was lost: another one may listen at its address by now."""
        if link.member not in self.lost:
            log.info("connected to queue process", address=link.address)

    def heard(self, link: QueueLink) -> None:
        """Logs that a process that was lost is there all the same: it has said something."""
        if link.member in self.lost:
            self.lost.discard(link.member)
            log.info("lost queue process is back", address=link.address, member=link.member)

    def tell(self, link: QueueLink, attempts: Sequence[Attempt]) -> None:
        """Logs that a link ended while `attempts` were under way on it: once for each loss."""
        left = self._left_of(link.member)
        if self.leaving:
            log.debug("link to a queue process ended", address=link.address)
        elif link.member in self.lost:
            log.debug("queue process is still lost", address=link.address)
        elif left:
            self.lost.add(link.member)
            log.warning(
                "lost queue process; what it had not confirmed goes to its successor",
                address=link.address,
                member=link.member,
                partitions=len(left),
                unconfirmed=sum(len(attempt.messages) for attempt in attempts),
                do="see in its log how it ended; hopline partitions shows who takes over",
            )
        else:
            log.info("queue process left; all it had is handed over", address=link.address, member=link.member)

    def _left_of(self, member: str) -> list[int]:
        handed = self._handed.get(member, ())
        return sorted(number for number, (owner, _) in self._owned.items() if owner == member and number not in handed)
