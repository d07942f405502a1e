"""What a protocol's package is to the gateway: an engine for each connection (plug-ins of group `protocols`)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Protocol

from services.common.errors import BrokerError
from services.gateway.answers import Answers
from services.gateway.protocols.dealings import Chunk, Received
from services.gateway.protocols.idleness import Idleness
from services.gateway.protocols.limits import Limits
from services.gateway.protocols.producing import Producing
from services.gateway.vocabulary import Request


class Engine(Answers, Protocol):
    """One connection's protocol. Never raises on what the peer sends: it answers as its specification says."""

    LIMITS: ClassVar[type[Limits]]
    """What it is made with, and the mechanisms that it offers, best first."""

    @staticmethod
    def begins(opening: bytes) -> bool | None:
        """Whether a peer whose first bytes these are speaks it; None while that cannot be known."""

    @property
    def name(self) -> str:
        """What the peer speaks: "AMQP 0-9-1". Before it has spoken, the newest of what it may."""

    def receive(self, data: Received) -> list[Request]:
        """What the bytes ask for; may be called with any split of the stream. Not all at once when it is much: then
        `unread` says so, and the next call goes on, also with no bytes.
        """

    def data_to_send(self) -> list[Chunk]:
        """Takes what is to be written, in order."""

    @property
    def idleness(self) -> Idleness:
        """As agreed, once the connection is open. By it `beat` is called, and a silent peer is cut off."""

    @property
    def unread(self) -> bool:
        """Whether more came than the last `receive` has looked at."""

    @property
    def effort(self) -> int:
        """Microseconds that the last `receive` took, about: frames can be many that ask for nothing."""

    @property
    def incomplete(self) -> int:
        """Bytes that came and are kept until the rest of their frame, or of their message, is there."""

    @property
    def ends_for(self) -> str:
        """The fault for which it ends its connection, for the log; "" while it does not."""

    @property
    def closing(self) -> bool:
        """Whether only the peer's farewell is waited for; the connection does not wait for it long."""

    def beat(self) -> None:
        """Nothing else was written: says that we are there."""

    def challenge(self, data: bytes) -> None: ...

    def authenticated(self, final: bytes = b"") -> None:
        """The answer to Authenticate: the client is who it says; `final` is what its mechanism tells it with that."""

    def fail(self, request: Request, error: BrokerError) -> None:
        """Ends the session or the connection, as the error's reach and the request say. For a session: its later
        requests are ignored until the peer has acknowledged, and one CloseSession follows from `receive` or at once
        from here by `pending_requests`.
        """

    @property
    def asks(self) -> bool:
        """Whether there may be requests that arose from the broker's own calls."""

    def pending_requests(self) -> list[Request]:
        """Requests that arose from the broker's own calls (a CloseSession after `fail`); call after answering."""

    def producing(self, session: int) -> Iterable[Producing]:
        """The links by which its peer publishes in a session, in a protocol that has links."""

    def cancelled(self, session: int, tag: str, *, stolen: bool = False, fault: BrokerError | None = None) -> None:
        """The broker ended a consumer: its queue was deleted, its link was attached elsewhere, or by its own fault."""

    def blocked(self, reason: str | None) -> None:
        """Publishers of this connection are held back (None: no longer). Told to peers that understand it."""

    @property
    def holds_back(self) -> bool:
        """Whether a peer that was told so may be read on: it sends no more messages, or not much. Others are not."""

    def close(self, error: BrokerError) -> None:
        """Ends the connection from the broker's side (320 CONNECTION_FORCED for a shutdown), a Close follows."""
