"""The port by which services tell the ledger what happens to messages. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from services.common.ledger.encoding import Mixture
from services.common.ledger.place import LedgerPlace


class Recorder(Protocol):
    """Takes what happens to messages. When `on` is False, callers need not prepare anything for it."""

    on: bool

    def record(
        self,
        stage: int,
        place: LedgerPlace,
        uids: Sequence[int],
        *,
        outcome: str = "",
        reason: str = "",
        size: int = 0,
        successors: range | None = None,
    ) -> None:
        """Messages have reached a stage now. `uids` (a list or a range) is kept: do not change it afterwards."""

    def record_each(self, stage: int, mixture: Mixture, uids: Sequence[int], *, reason: str = "") -> None:
        """As `record`, with a place for each message; uids ascend. Arguments are kept: do not change them."""

    def note(self, stage: int, place: LedgerPlace) -> None:
        """Tells of a partition, now: TAKEN_OVER or HANDED_OVER."""

    def identify(self, message_format: str, uids: Sequence[int], properties: Sequence[bytes]) -> None:
        """Received messages have properties that identify them: one for all of them, or one for each."""


class NoRecorder:
    """Used where there is no ledger."""

    on = False

    def record(
        self,
        stage: int,
        place: LedgerPlace,
        uids: Sequence[int],
        *,
        outcome: str = "",
        reason: str = "",
        size: int = 0,
        successors: range | None = None,
    ) -> None:
        """Does nothing."""

    def record_each(self, stage: int, mixture: Mixture, uids: Sequence[int], *, reason: str = "") -> None:
        """Does nothing."""

    def note(self, stage: int, place: LedgerPlace) -> None:
        """Does nothing."""

    def identify(self, message_format: str, uids: Sequence[int], properties: Sequence[bytes]) -> None:
        """Does nothing."""


OFF: Recorder = NoRecorder()
