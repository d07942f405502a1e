"""The header fields of gRPC over HTTP/2 (PROTOCOL-HTTP2.md: Request-Headers, Response-Headers, Trailers)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple
from urllib.parse import quote, unquote

import grpc
from google.protobuf.descriptor import MethodDescriptor

from services.common.http2.events import Fields
from services.common.http2.known import keep

_CONTENT_TYPE = "application/grpc"
RESPONSE: Fields = [(":status", "200"), ("content-type", _CONTENT_TYPE)]
OK: Fields = [("grpc-status", "0")]
NOT_A_CALL: Fields = [(":status", "415"), ("content-length", "0")]
_LONGEST_TEXT = 4000  # octets, of which each may take three: peers take 16 KiB of header fields
_STATUSES = {str(status.value[0]): status for status in grpc.StatusCode}
_OURS = frozenset({":status", "content-type", "grpc-status", "grpc-message"})

Metadata = tuple[tuple[str, str], ...]

_requests: dict[tuple[str, Metadata], Fields] = {}


def path_of(method: MethodDescriptor) -> str:
    """`/package.Service/Method`."""
    return f"/{method.containing_service.full_name}/{method.name}"


def request(method: str, metadata: Iterable[tuple[str, str]] = ()) -> Fields:
    """The header fields of a call without deadline, not to be changed; `method` is `/package.Service/Method`."""
    key = method, tuple(metadata)
    if (known := _requests.get(key)) is None:
        known = _request(*key)
        keep(_requests, key, known)
    return known


def _request(method: str, metadata: Metadata) -> Fields:
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


def trailers(
    status: grpc.StatusCode = grpc.StatusCode.OK, text: str = "", metadata: Iterable[tuple[str, str]] = ()
) -> Fields:
    """Status, what the service adds, and Status-Message, which is percent-encoded; not to be changed.

    A text that is too long is cut: header fields that are too large would end the connection, with all its calls.
    """
    if status is grpc.StatusCode.OK and not text and not metadata:
        return OK
    fields = [("grpc-status", str(status.value[0])), *metadata]
    if not text:
        return fields
    cut = text.encode(errors="replace")[:_LONGEST_TEXT].decode(errors="ignore")
    return [*fields, ("grpc-message", quote(cut, safe=" !\"#$&'()*+,/:;<=>?@[\\]^`{|}"))]


class Outcome(NamedTuple):
    """How a call ended; `metadata` is what the service added."""

    status: grpc.StatusCode
    text: str
    metadata: Metadata = ()


_SUCCESS = Outcome(grpc.StatusCode.OK, "")


def outcome(fields: Fields, *, ended: bool) -> Outcome | None:
    """How a call ended, from the server's header fields; None while it goes on."""
    if fields == OK:
        return _SUCCESS
    if fields == RESPONSE and not ended:
        return None
    by_name = dict(fields)
    status = by_name.get("grpc-status")
    if status is None:
        http = by_name.get(":status", "")
        if not ended and http == "200":
            return None
        return Outcome(grpc.StatusCode.UNKNOWN, f"the peer does not speak gRPC (HTTP status {http or 'missing'})")
    added = tuple((name, value) for name, value in fields if name not in _OURS)
    found = _STATUSES.get(status, grpc.StatusCode.UNKNOWN)
    return Outcome(found, unquote(by_name.get("grpc-message", "")), added)


def failure(fields: Fields, *, ended: bool) -> str | None:
    """Why a call ended, from the server's header fields: "" for success, None while the call goes on."""
    if (found := outcome(fields, ended=ended)) is None or found.status is grpc.StatusCode.OK:
        return found and ""
    return f"{found.status.name}: {found.text}"
