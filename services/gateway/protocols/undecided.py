"""An engine until it is known which protocol its peer speaks: by its first bytes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NoReturn

from services.common.errors import BrokerError
from services.gateway.protocols.dealings import Chunk, Received
from services.gateway.protocols.engine import Engine
from services.gateway.protocols.idleness import FOR_EVER
from services.gateway.protocols.limits import Limits
from services.gateway.vocabulary import Close, Request


class Undecided:
    """`become` is called with the engine that takes its place; see protocols.engine."""

    name = "unknown"
    idleness = FOR_EVER
    effort = 0
    unread = False
    ends_for = ""
    closing = False
    holds_back = False

    LIMITS: ClassVar[type[Limits]] = Limits

    def __init__(self, kinds: Sequence[type[Engine]], create: Callable[[type[Engine]], Engine]) -> None:
        """The first of `kinds` answers a peer that speaks none of them."""
        self._kinds = kinds
        self._create = create
        self._data = b""
        self._pending: list[Request] = []
        self.become: Callable[[Engine], None] = _not_set

    @staticmethod
    def begins(_opening: bytes) -> bool | None:
        """As Engine says."""
        return None

    def receive(self, data: Received) -> list[Request]:
        """As Engine says: of the protocol, once it is known."""
        self._data += bytes(data)
        told = {kind: kind.begins(self._data) for kind in self._kinds}
        if None in told.values() and True not in told.values():
            return []
        kind = next((kind for kind, begins in told.items() if begins), self._kinds[0])
        engine = self._create(kind)
        self.become(engine)
        return engine.receive(self._data)

    @property
    def incomplete(self) -> int:
        """As Engine says."""
        return len(self._data)

    @property
    def asks(self) -> bool:
        """As Engine says."""
        return bool(self._pending)

    def pending_requests(self) -> list[Request]:
        """As Engine says."""
        taken, self._pending = self._pending, []
        return taken

    def close(self, error: BrokerError) -> None:
        """As Engine says: in no words, since none would be understood."""
        self._pending.append(Close(0, error.text))

    def data_to_send(self) -> list[Chunk]:
        """As Engine says."""
        return []

    def beat(self) -> None:
        """As Engine says."""

    def blocked(self, reason: str | None) -> None:
        """As Engine says."""

    def succeed(self, request: Request, result: Any = None) -> None:  # noqa: ANN401 - as Engine says
        """Of the end that it asked for."""

    def fail(self, request: Request, error: BrokerError) -> None:
        """Nothing was asked for."""

    def producing(self, _session: int) -> tuple[()]:
        """There is no session."""
        return ()

    def _nothing_asked(self, *_: object, **__: object) -> NoReturn:
        raise AssertionError("an answer to what was not asked for")

    challenge = authenticated = deliver = confirm = returned = cancelled = _nothing_asked


def _not_set(_engine: Engine) -> None:
    """Its connection sets another."""
