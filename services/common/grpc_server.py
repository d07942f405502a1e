"""A gRPC server for any service: it answers calls, with health checking and reflection."""

from __future__ import annotations

from collections.abc import Iterable

from services.common.grpc_answers import Answers
from services.common.grpc_channel import serve
from services.common.grpc_health import Health
from services.common.runtime import CannotStart
from services.common.streams.address import cannot_listen
from services.common.telemetry.rpc import TracedCalls
from services.common.telemetry.tracer import OFF, Tracer


class Server:
    """A gRPC server with health checking and reflection; NOT_SERVING until `ready`."""

    def __init__(self, address: str, services: Iterable[str], tracer: Tracer = OFF) -> None:
        """`address` is the one to listen on; `tracer` gets a span of each call that has a trace context."""
        self._address = address
        self.grpc = serve(address, [*([TracedCalls(tracer)] if tracer.on else []), Answers()])
        self._health = Health(services, self.grpc)

    async def listen(self) -> None:
        """Binds and accepts calls; raises CannotStart when the address is taken."""
        await self._health.say(serving=False)
        try:
            await self.grpc.start()
        except OSError as error:
            raise CannotStart(cannot_listen(self._address)) from error

    async def ready(self) -> None:
        """From now on health checks answer SERVING."""
        await self._health.say(serving=True)

    async def stop(self, grace: float = 1.0) -> None:
        """Refuses new calls, waits `grace` seconds for those under way, then ends them."""
        await self._health.shut_down()
        await self.grpc.stop(grace)
