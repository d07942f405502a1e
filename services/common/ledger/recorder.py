"""What services tell of messages, to whatever notes it. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from services.common.ledger.encoding import Mixture
from services.common.ledger.place import Place


class Recorder(Protocol):
    """What services tell. `on` is for those who would have to work out what to tell."""

    on: bool

    def record(
        self,
        stage: int,
        place: Place,
        uids: Sequence[int],
        *,
        outcome: str = "",
        reason: str = "",
        size: int = 0,
        successors: range | None = None,
    ) -> None:
        """Messages have reached a stage now. `uids` (a list or a range) is kept and must not be changed any more."""

    def record_each(self, stage: int, mixture: Mixture, uids: Sequence[int], *, reason: str = "") -> None:
        """As `record`, each message at a place of its own; uids ascend. What is given is kept as it is."""

    def note(self, stage: int, place: Place) -> None:
        """Something befell a partition now: TAKEN_OVER or HANDED_OVER."""

    def identify(self, message_format: str, uids: Sequence[int], properties: Sequence[bytes]) -> None:
        """Messages that were received have properties that name them: one for all of them, or one for each."""


class NoRecorder:
    """Where there is no ledger."""

    on = False

    def record(
        self,
        stage: int,
        place: Place,
        uids: Sequence[int],
        *,
        outcome: str = "",
        reason: str = "",
        size: int = 0,
        successors: range | None = None,
    ) -> None:
        """Nothing."""

    def record_each(self, stage: int, mixture: Mixture, uids: Sequence[int], *, reason: str = "") -> None:
        """Nothing."""

    def note(self, stage: int, place: Place) -> None:
        """Nothing."""

    def identify(self, message_format: str, uids: Sequence[int], properties: Sequence[bytes]) -> None:
        """Nothing."""


OFF: Recorder = NoRecorder()
