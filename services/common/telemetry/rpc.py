"""Traces calls between services: the trace context goes with the call as gRPC metadata."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import grpc
import grpc.aio

from services.common.clock import epoch_ns
from services.common.telemetry import conventions as c
from services.common.telemetry.context import SpanContext, parse
from services.common.telemetry.span import Span
from services.common.telemetry.tracer import Tracer

_KEY = "traceparent"

if TYPE_CHECKING:
    _Handler = grpc.RpcMethodHandler[Any, Any]  # generic in its stubs only


def client_span(method: str, parent: SpanContext) -> Span:
    """The span of a call that begins now; `method` is package.Service/Method."""
    attributes: dict[str, str | int | float | bool] = {c.RPC_SYSTEM: "grpc", c.RPC_METHOD: method}
    return Span(method, c.Kind.CLIENT, parent.child(), parent, attributes)


class TracedCalls(grpc.aio.ServerInterceptor):
    """Makes a span of every unary call that has a sampled context; leaves all other calls alone."""

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[_Handler | None]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> _Handler | None:
        """As grpc.aio.ServerInterceptor."""
        handler = await continuation(handler_call_details)
        metadata = dict(handler_call_details.invocation_metadata or ())
        parent = parse(metadata[_KEY]) if _KEY in metadata else None
        unary: Callable[[Any, Any], Any] | None = getattr(handler, "unary_unary", None)
        if parent is None or not parent.sampled or handler is None or unary is None:
            return handler
        return self._traced(handler, unary, handler_call_details.method.removeprefix("/"), parent)

    def _traced(
        self, handler: _Handler, inner: Callable[[Any, Any], Any], method: str, parent: SpanContext
    ) -> _Handler:
        async def call(request: object, context: object) -> Any:  # noqa: ANN401 - the method's response type
            attributes: dict[str, str | int | float | bool] = {c.RPC_SYSTEM: "grpc", c.RPC_METHOD: method}
            span = Span(method, c.Kind.SERVER, parent.child(), parent, attributes, start_ns=epoch_ns())
            try:
                return await inner(request, context)
            except BaseException as failure:
                span.fail(type(failure).__name__)
                raise
            finally:
                self._tracer.end(span)

        return grpc.unary_unary_rpc_method_handler(
            call, request_deserializer=handler.request_deserializer, response_serializer=handler.response_serializer
        )
