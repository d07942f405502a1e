"""The half of an engine that no protocol differs in: bytes that wait, and whose turn it is to speak."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Final, Protocol

from services.common.errors import BrokerError, ResourceError
from services.gateway.protocols.dealings import Chunk, Dealings, Received
from services.gateway.protocols.idleness import Idleness
from services.gateway.protocols.inbox import Inbox
from services.gateway.protocols.phases import PhasedState
from services.gateway.protocols.producing import Producing
from services.gateway.vocabulary import Request

NEVER: Final = 1 << 62
"""Bytes to wait for before another look, while the broker has to answer first."""

MOST_EFFORT: Final = 1000
"""Microseconds of work on one read, after which others have their turn. Frames are charged as they were measured: most
take one, and a method or a performative a part of one more for each byte, at the worst.
"""

_BEATS_BEFORE_OPEN: Final = 100  # a peer that signs in has no need of any
_HELD_MAX: Final = 16 << 10  # bytes from a peer that does not wait for the answers of the handshake


class Conversation(Protocol):
    """The connection itself, as a protocol has it; see `phases`."""

    @property
    def state(self) -> PhasedState: ...

    @property
    def reason(self) -> str:
        """Why it ends, for the log; "" while it does not."""

    @property
    def is_opened(self) -> bool: ...

    def challenge(self, data: bytes) -> None: ...

    def authenticated(self, final: bytes) -> None: ...


class StreamEngine(ABC):
    """See protocols.engine. `beat` is what is written when nothing else is."""

    def __init__(self, dealings: Dealings, conversation: Conversation, beat: bytes) -> None:
        self._dealings = dealings
        self._conversation = conversation
        self._beat = beat
        self._inbox = Inbox()
        self._early = 0  # beats before the connection was open
        self.unread = False  # as Engine says

    @abstractmethod
    def _parse(self, data: Received) -> None:
        """Handles what is whole; keeps the rest in the inbox."""

    def _take_back(self) -> None:  # noqa: B027 - most keep nothing of it
        """Nothing of what was lent may be left: its memory is written over."""

    @abstractmethod
    def _end(self, error: BrokerError) -> None:
        """Ends the connection from our side, and says why."""

    # -------------------------------------------------------------- from the peer

    def receive(self, data: Received) -> list[Request]:
        """As Engine says."""
        self.unread, self._dealings.effort = False, 0
        if isinstance(data, memoryview):
            self._take_in_lent(data)
        else:
            self._take_in(data)
        return self._dealings.take_requests()

    def _take_in_lent(self, data: memoryview) -> None:
        """Much was read: only what completes a frame is put together with what waits of that."""
        while self._completes(data):
            missing = self._inbox.missing
            self._take_in(data[:missing])
            data = data[missing:]
        self._take_in(data)
        self._take_back()

    def _completes(self, data: memoryview) -> bool:
        """Whether it has the rest of a frame that waits, and more behind that."""
        return self._conversation.state.reads and 0 < self._inbox.missing < len(data)

    def _take_in(self, data: Received) -> None:
        if self._conversation.state.reads:
            waiting = self._inbox.add(data)
            if waiting is not None:
                self._parse(waiting)
            if self._conversation.state.waits_for_broker and self._inbox.size > _HELD_MAX:
                self.close(ResourceError(f"more than {_HELD_MAX} bytes before the connection is open"))

    def _keep(self, rest: Received, needed: int) -> None:
        """What is not whole waits until it is, or until the broker has answered."""
        if self._conversation.state.reads:
            self._inbox.keep(bytes(rest), NEVER if self._conversation.state.waits_for_broker else needed)

    def _beats_too_early(self) -> bool:
        """Called for each beat of the peer; whether there are more than a peer sends that opens one."""
        if not self._conversation.is_opened:
            self._early += 1
        return self._early > _BEATS_BEFORE_OPEN

    def _resume(self) -> None:
        """Reads what was held back while the broker had to answer first."""
        self.unread, self._dealings.effort = False, 0
        if self._conversation.state.reads and self._inbox.size:
            self._parse(self._inbox.take())
        elif not self._conversation.state.waits_for_broker:
            self._inbox.keep(b"", 0)

    def producing(self, session: int) -> Iterable[Producing]:  # noqa: ARG002 - as Engine says
        """As Engine says."""
        return ()

    # -------------------------------------------------------------- to the peer

    def data_to_send(self) -> list[Chunk]:
        """As Engine says."""
        its = self._dealings
        taken, its.out = its.out, []
        return taken

    @property
    def asks(self) -> bool:
        """As Engine says; or there is more to read, which the connection has to ask for."""
        return self.unread or bool(self._dealings.requests)

    def pending_requests(self) -> list[Request]:
        """As Engine says."""
        return self._dealings.take_requests() if self._dealings.requests else []

    @property
    def idleness(self) -> Idleness:
        """As Engine says."""
        return self._dealings.idleness

    @property
    def effort(self) -> int:
        """As Engine says."""
        return self._dealings.effort

    @property
    def incomplete(self) -> int:
        """As Engine says."""
        # What is unread is not waited for from the peer: it is read no further meanwhile.
        return self._dealings.incomplete + (0 if self.unread else self._inbox.size)

    @property
    def ends_for(self) -> str:
        """As Engine says."""
        return self._conversation.reason

    @property
    def closing(self) -> bool:
        """As Engine says."""
        return self._conversation.state.closing

    @property
    def holds_back(self) -> bool:
        """As Engine says."""
        return False

    def beat(self) -> None:
        """As Engine says."""
        if self._conversation.state.beats:
            self._dealings.out.append(self._beat)

    def challenge(self, data: bytes) -> None:
        """As Engine says."""
        self._conversation.challenge(data)
        self._resume()

    def authenticated(self, final: bytes = b"") -> None:
        """As Engine says."""
        self._conversation.authenticated(final)
        self._resume()

    def close(self, error: BrokerError) -> None:
        """As Engine says."""
        self._end(error)
        self._resume()
