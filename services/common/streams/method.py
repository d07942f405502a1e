"""A method of a service, as a channel offers it: what a generated stub calls."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from services.common.streams.client_call import ClientCall

if TYPE_CHECKING:
    from services.common.streams.channel import Channel


Serialize = Callable[[Any], bytes]
Deserialize = Callable[[bytes], Any]


class Method:
    """`asks_many`: the client sends a stream of requests; `path` is `/package.Service/Method`."""

    def __init__(
        self,
        channel: Channel,
        path: str,
        serialize: Serialize | None,
        deserialize: Deserialize | None,
        *,
        asks_many: bool,
    ) -> None:
        self.path = path
        self.asks_many = asks_many
        self.serialize = serialize or bytes
        self.deserialize = deserialize or bytes
        self._channel = channel

    def __call__(
        self,
        request: Any = None,  # noqa: ANN401 - the method's request type, or an iterator of it
        *,
        timeout: float | None = None,
        metadata: Iterable[tuple[str, str]] | None = None,
        wait_for_ready: bool | None = None,
    ) -> ClientCall:
        """As grpc.aio's UnaryUnaryMultiCallable and its kin; created in a running loop."""
        more = tuple(metadata or ())
        return ClientCall(self._channel, self, request, timeout, more, waits=bool(wait_for_ready))
