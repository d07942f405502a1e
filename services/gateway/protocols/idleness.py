"""How long either end of a connection may say nothing: each protocol has a rule of its own for what was agreed."""

from __future__ import annotations

from typing import Final, NamedTuple


class Idleness(NamedTuple):
    """In seconds; 0: for as long as it likes."""

    ours: float  # when nothing was written for so long, a beat is due
    theirs: float  # when nothing came for so long, the peer is gone


FOR_EVER: Final = Idleness(0, 0)
