"""A gRPC server for streams that carry messages; with health checking and reflection."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from services.common.grpc_health import Health
from services.common.runtime import CannotStart
from services.common.streams.address import cannot_listen
from services.common.streams.call_server import Accept, CallServer


class StreamServer(CallServer):
    """NOT_SERVING until `ready`. Streams go to the handlers of `add_stream`, other calls to gRPC's own servicers."""

    def __init__(self, address: str, services: Iterable[str]) -> None:
        """`address` is the gRPC target to listen on."""
        super().__init__(address)
        self._health = Health(services, self)

    def add_stream(self, method: str, accept: Accept) -> None:
        """`accept` makes the listener of each stream that is opened to `/package.Service/Method`."""
        self.streams[method] = accept

    def tell(self, name: str, holds: Callable[[], bool]) -> None:
        """Health checks of this name are answered by what holds then."""
        self._health.tell(name, holds)

    async def listen(self) -> None:
        """Binds and accepts calls; raises CannotStart when the address is taken."""
        await self._health.say(serving=False)
        try:
            await self.start()
        except OSError as error:
            raise CannotStart(cannot_listen(self.address)) from error

    async def ready(self) -> None:
        """From now on health checks answer SERVING."""
        await self._health.say(serving=True)

    async def stop(self, grace: float | None = 1.0) -> None:
        """As CallServer.stop."""
        await self._health.shut_down()
        await super().stop(grace)
