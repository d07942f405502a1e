"""How we close a connection: when what its peer asked before is answered; at once where nothing can have been asked."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from services.gateway import vocabulary as to_broker
from services.gateway.protocols.dealings import Dealings


class Leaving(ABC):
    """Of a protocol's connection, whose states are `STATES`: LEAVING, BROKEN, CLOSING and CLOSED are among them."""

    STATES: ClassVar[type[Any]]

    state: Any

    def __init__(self, dealings: Dealings) -> None:
        self._dealings = dealings
        self.reason = ""
        """Why it ends, for the log; "" while it does not, or by the peer's wish."""
        self._due: Any = None  # our close, while what was asked before is still being answered

    @abstractmethod
    def _send_close(self, close: Any) -> None:  # noqa: ANN401 - the protocol's own
        """Puts our close behind what is to be written."""

    def _go_on(self, *, told: bool, broken: bool) -> None:
        """What follows where the peer is to hear of an error, unless another was `told` before.

        `broken`: its bytes cannot be told apart any more.
        """
        if broken:
            self._break()
        elif not told and self.state.leaving:
            self._dealings.ask(to_broker.EndSessions(0))

    def _break(self) -> None:
        if self.state.leaving:
            self.state = self.STATES.BROKEN
            self._dealings.ask(to_broker.Close(0, self.reason))
        elif self.state.reads:
            self.end(self.reason)

    def _say_close(self) -> None:
        due, self._due = self._due, None
        if due is not None:
            self._send_close(due)

    def sessions_ended(self) -> None:
        """All is answered that was asked before the fault for which we leave."""
        self._say_close()
        self.state = self.STATES.CLOSING

    def end(self, reason: str) -> None:
        """Nothing more is to be said."""
        if self.state is not self.STATES.CLOSED:
            self.state = self.STATES.CLOSED
            self._dealings.ask(to_broker.Close(0, reason))
