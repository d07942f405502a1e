"""When clients last asked for something that they may wait for: while others do, nobody is given long turns."""

from __future__ import annotations


class Questions:
    """One for each gateway. Times are the loop's, in seconds; clients are connections, by their names."""

    __slots__ = ("_asker", "_before", "_latest")

    def __init__(self) -> None:
        self._asker = ""  # who was the last to ask, and when
        self._latest = 0.0
        self._before = 0.0  # when somebody else had

    def ask(self, asker: str, now: float) -> None:
        """A client asks; what it has read waits for its turn, and may be older than what another has asked since."""
        if asker != self._asker:
            self._asker, self._before = asker, self._latest
        self._latest = max(self._latest, now)

    def of_others(self, asker: str) -> float:
        """When one last did that is not `asker`; 0: never."""
        return self._before if asker == self._asker else self._latest
