"""Remembers what each owner of a partition was told: once in each of its epochs, on each stream."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from services.common.clients.queue_link import QueueLink


class Said:
    """One announcement, by partition."""

    def __init__(self) -> None:
        self._said: dict[int, tuple[QueueLink, int]] = {}  # partition → the link it was told on, and for which epoch

    def has(self, partition: int, epoch: int, link: QueueLink) -> bool:
        """Whether this owner was told in this epoch."""
        return self._said.get(partition) == (link, epoch)

    def add(self, partition: int, epoch: int, link: QueueLink) -> None:
        """The owner has been told."""
        self._said[partition] = link, epoch

    def forget(self, partition: int) -> None:
        """The owner must be told again."""
        self._said.pop(partition, None)

    def forget_link(self, link: QueueLink) -> None:
        """The link's stream is gone: what was told on it must be told again."""
        self._said = {partition: said for partition, said in self._said.items() if said[0] is not link}
