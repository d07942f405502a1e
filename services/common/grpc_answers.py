"""What a gRPC method raises becomes its answer: a BrokerError as it is, anything else as InternalError."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TYPE_CHECKING, Any

import grpc
import grpc.aio

from services.common.containment import contained
from services.common.errors import BrokerError
from services.common.grpc_errors import abort

if TYPE_CHECKING:
    _Handler = grpc.RpcMethodHandler[Any, Any]  # generic in its stubs only

_MAKERS = {
    "unary_unary": grpc.unary_unary_rpc_method_handler,
    "unary_stream": grpc.unary_stream_rpc_method_handler,
    "stream_unary": grpc.stream_unary_rpc_method_handler,
    "stream_stream": grpc.stream_stream_rpc_method_handler,
}


class Answers(grpc.aio.ServerInterceptor):
    """Intercepts all methods of a server: every call is answered, and a fault ends no more than its own call."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[_Handler, _Handler]] = {}  # by method: as it was found, and as it answers

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[_Handler | None]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> _Handler | None:
        """As grpc.aio.ServerInterceptor."""
        handler = await continuation(handler_call_details)
        if handler is None:
            return None
        method = handler_call_details.method
        known = self._known.get(method)
        if known is None or known[0] is not handler:
            known = self._known[method] = handler, _answering(handler, method)
        return known[1]


def _answering(handler: _Handler, method: str) -> _Handler:
    kind = next((kind for kind in _MAKERS if getattr(handler, kind, None)), None)
    if kind is None:
        return handler
    inner = getattr(handler, kind)
    answering = _stream if inspect.isasyncgenfunction(inner) else _single
    return _MAKERS[kind](
        answering(inner, method),
        request_deserializer=handler.request_deserializer,
        response_serializer=handler.response_serializer,
    )


def _single(inner: Callable[[Any, Any], Awaitable[Any]], method: str) -> Callable[[Any, Any], Awaitable[Any]]:
    async def call(request: object, context: Any) -> Any:  # noqa: ANN401 - generic in its stubs only
        try:
            return await inner(request, context)
        except Exception as fault:  # noqa: BLE001 - whatever the fault, it is this call's
            await _abort(context, fault, method)

    return call


def _stream(inner: Callable[[Any, Any], Any], method: str) -> Callable[[Any, Any], AsyncIterator[Any]]:
    async def call(request: object, context: Any) -> AsyncIterator[Any]:  # noqa: ANN401 - as above
        try:
            async with contextlib.aclosing(inner(request, context)) as answers:
                async for answer in answers:
                    yield answer
        except Exception as fault:  # noqa: BLE001 - as above
            await _abort(context, fault, method)

    return call


async def _abort(context: Any, fault: Exception, method: str) -> None:  # noqa: ANN401 - as above
    if isinstance(fault, grpc.aio.AbortError):
        raise fault  # it has been answered
    error = fault if isinstance(fault, BrokerError) else contained("a gRPC call", fault, method=method)
    await abort(context, error)
