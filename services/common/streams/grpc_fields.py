"""The header fields of gRPC over HTTP/2 (PROTOCOL-HTTP2.md: Request-Headers, Response-Headers, Trailers)."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import quote, unquote

import grpc
from google.protobuf.descriptor import MethodDescriptor

from services.common.http2.events import Fields

_CONTENT_TYPE = "application/grpc"
RESPONSE: Fields = [(":status", "200"), ("content-type", _CONTENT_TYPE)]
NOT_A_CALL: Fields = [(":status", "415"), ("content-length", "0")]
_NAMES = {str(status.value[0]): status.name for status in grpc.StatusCode}


def path_of(method: MethodDescriptor) -> str:
    """`/package.Service/Method`."""
    return f"/{method.containing_service.full_name}/{method.name}"


def request(method: str, metadata: Iterable[tuple[str, str]] = ()) -> Fields:
    """The header fields of a call without deadline; `method` is `/package.Service/Method`."""
    return [
        (":method", "POST"),
        (":scheme", "http"),
        (":path", method),
        (":authority", "localhost"),
        ("te", "trailers"),
        ("content-type", _CONTENT_TYPE),
        ("user-agent", "hopline"),
        *metadata,
    ]


def called(fields: Fields) -> str | None:
    """The method that a request calls, or None when the request is not gRPC's."""
    by_name = dict(fields)
    is_call = by_name.get(":method") == "POST" and by_name.get("content-type", "").startswith(_CONTENT_TYPE)
    return by_name.get(":path") if is_call else None


def trailers(status: grpc.StatusCode = grpc.StatusCode.OK, text: str = "") -> Fields:
    """Status and Status-Message, which is percent-encoded."""
    fields = [("grpc-status", str(status.value[0]))]
    return [*fields, ("grpc-message", quote(text, safe=" !\"#$&'()*+,/:;<=>?@[\\]^`{|}"))] if text else fields


def failure(fields: Fields, *, ended: bool) -> str | None:
    """Why a call ended, from the server's header fields: "" for success, None while the call goes on."""
    by_name = dict(fields)
    status = by_name.get("grpc-status")
    if status is None:
        http = by_name.get(":status", "")
        return f"the peer does not speak gRPC (HTTP status {http or 'missing'})" if ended or http != "200" else None
    text = unquote(by_name.get("grpc-message", ""))
    return "" if status == "0" else f"{_NAMES.get(status, status)}: {text}"
