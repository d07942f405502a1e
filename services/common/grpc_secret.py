"""The stack's secret on gRPC's own runtime: channels that say it with every call, servers that want to hear it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, NoReturn, Self, cast

import grpc
import grpc.aio
import structlog

from services.common import secret

if TYPE_CHECKING:
    _Handler = grpc.RpcMethodHandler[Any, Any]  # generic in its stubs only

log = structlog.get_logger()

_KINDS = ("unary_unary", "unary_stream", "stream_unary", "stream_stream")


def saying(channel: grpc.aio.Channel, fields: secret.Fields) -> grpc.aio.Channel:
    """The channel, with `fields` in the metadata of each call; the channel itself where there are none."""
    return cast("grpc.aio.Channel", _Saying(channel, fields)) if fields else channel


class _Saying:
    """What generated code and ours use of a channel. An interceptor of gRPC's would start a task for each call."""

    def __init__(self, channel: grpc.aio.Channel, fields: secret.Fields) -> None:
        self._channel = channel
        self._fields = fields

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever a channel has
        found = getattr(self._channel, name)
        return self._method_maker(found) if name in _KINDS else found

    async def __aenter__(self) -> Self:
        await self._channel.__aenter__()
        return self

    async def __aexit__(self, *failure: object) -> None:
        await self._channel.close()

    def _method_maker(self, make: Callable[..., Callable[..., Any]]) -> Callable[..., Callable[..., Any]]:
        def made(*arguments: Any, **options: Any) -> Callable[..., Any]:  # noqa: ANN401 - as gRPC's
            method = make(*arguments, **options)

            def call(*request: Any, metadata: Any = (), **how: Any) -> Any:  # noqa: ANN401 - as gRPC's
                return method(*request, metadata=(*(metadata or ()), *self._fields), **how)

            return call

        return made


class Guard(grpc.aio.ServerInterceptor):
    """Answers UNAUTHENTICATED to whoever does not say the secret, before a request is read.

    What anybody may ask is answered before as well, as far as `unread` has that: a request may be large.
    """

    def __init__(self, address: str) -> None:
        """`address` is where the server listens."""
        self._address = address
        self._told = False
        self.unread: dict[str, _Handler] = {}  # by method

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[_Handler | None]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> _Handler | None:
        """As gRPC asks for."""
        details = handler_call_details
        if secret.is_said(details.invocation_metadata or (), self._address):
            return await continuation(details)
        if secret.is_open(details.method):
            return self.unread.get(details.method) or await continuation(details)
        if not self._told:
            self._told = True
            log.warning(
                "a call was refused, and later ones will be without a word",
                method=details.method,
                reason=secret.REFUSAL,
            )
        return grpc.stream_stream_rpc_method_handler(_refuse)


async def _refuse(_requests: object, context: grpc.aio.ServicerContext[Any, Any]) -> NoReturn:
    await context.abort(grpc.StatusCode.UNAUTHENTICATED, secret.REFUSAL)
