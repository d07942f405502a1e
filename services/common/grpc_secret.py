"""The stack's secret on gRPC's own runtime: servers that ask for it; grpc_saying.py has the channels that send it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, NoReturn

import grpc
import grpc.aio
import structlog

from services.common import secret

if TYPE_CHECKING:
    _Handler = grpc.RpcMethodHandler[Any, Any]  # generic in its stubs only

log = structlog.get_logger()


class Guard(grpc.aio.ServerInterceptor):
    """Answers UNAUTHENTICATED to calls without the secret, before their request is read.

    Methods that need no secret are answered without reading a request too, if `unread` has them: it may be large.
    """

    def __init__(self, address: str) -> None:
        """`address` is the one that the server listens on."""
        self._address = address
        self._told = False
        self.unread: dict[str, _Handler] = {}  # by method

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[_Handler | None]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> _Handler | None:
        """As grpc.aio.ServerInterceptor."""
        details = handler_call_details
        if secret.is_said(details.invocation_metadata or (), self._address):
            return await continuation(details)
        if secret.is_open(details.method):
            return self.unread.get(details.method) or await continuation(details)
        if not self._told:
            self._told = True
            log.warning(
                "a call was refused; later ones are refused without a log line",
                method=details.method,
                reason=secret.REFUSAL,
            )
        return grpc.stream_stream_rpc_method_handler(_refuse)


async def _refuse(_requests: object, context: grpc.aio.ServicerContext[Any, Any]) -> NoReturn:
    await context.abort(grpc.StatusCode.UNAUTHENTICATED, secret.REFUSAL)
