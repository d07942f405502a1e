"""The stack's secret on gRPC's own runtime: channels that send it with every call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self, cast

import grpc.aio

from services.common import secret

_KINDS = ("unary_unary", "unary_stream", "stream_unary", "stream_stream")


def saying(channel: grpc.aio.Channel, fields: secret.Fields) -> grpc.aio.Channel:
    """The channel, with `fields` in the metadata of each call; the channel itself where there are none."""
    return cast("grpc.aio.Channel", _Saying(channel, fields)) if fields else channel


class _Saying:
    """The part of a channel that we and generated code use. gRPC's interceptors would start a task for each call."""

    def __init__(self, channel: grpc.aio.Channel, fields: secret.Fields) -> None:
        self._channel = channel
        self._fields = fields

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - any attribute of a channel
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
