"""The body of a message: as it is, cut, and as JSON where it is any."""

from __future__ import annotations

import gzip
from typing import Any

import pytest
from pamqp import commands

from services.common.message import amqp_map
from services.mgmt.model.faults import IllegalConfiguration
from services.mgmt.model.message_content import Content
from tests.support.messages import facts


def content(body: bytes, **properties: Any) -> Content:
    return Content(7, facts(), commands.Basic.Properties(**properties).marshal(), body)


@pytest.mark.parametrize(
    ("type_", "body", "json"),
    [
        ("amqp/map", amqp_map.dump({"a": [1, "b"]}), {"a": [1, "b"]}),
        ("amqp/list", amqp_map.dump(["long text"]), ["lon..."]),
        ("application/json; charset=utf-8", b'{"a": null}', {"a": None}),
        ("text/html", "ä".encode(), "ä"),
    ],
)
def test_json(type_: str, body: bytes, json: object) -> None:
    """A map, a list, JSON and a text are; texts in it are cut."""
    assert content(body, content_type=type_).answer(3, as_json=True, decompressed=False).value == json


@pytest.mark.parametrize(
    ("type_", "body"),
    [("image/png", b"x"), ("", b"x"), ("amqp/map", b"x"), ("application/json", b"{"), ("text/plain", b"\xff")],
)
def test_no_json(type_: str, body: bytes) -> None:
    """Of other types, and of what is none, that is said."""
    with pytest.raises(IllegalConfiguration, match="message 7 of type"):
        content(body, content_type=type_).answer(-1, as_json=True, decompressed=False)


def test_as_it_is() -> None:
    """What is compressed says so while it is whole; half of it is bytes; what a header cannot say is not said."""
    packed = gzip.compress(b"long text")
    its = content(packed, content_type="text/plain", content_encoding="gzip")
    whole, half = (its.answer(limit, as_json=False, decompressed=False) for limit in (-1, 5))
    assert (whole.data, whole.headers["Content-Encoding"]) == (packed, "gzip")
    assert (half.data, "Content-Encoding" in half.headers) == (packed[:5], False)
    unpacked = its.answer(4, as_json=False, decompressed=True)
    assert (unpacked.data, "Content-Encoding" in unpacked.headers) == (b"long", False)
    odd = content(b"x", content_type="text/html\r\nSet-Cookie: a=b", content_encoding="a\r\nb")
    told = odd.answer(-1, as_json=False, decompressed=False)
    assert (told.headers["Content-Type"], "Content-Encoding" in told.headers) == ("application/octet-stream", False)
    bomb = content(gzip.compress(b"\0" * (17 << 20)), content_encoding="gzip")
    assert len(bomb.answer(-1, as_json=False, decompressed=True).data or b"") < 1 << 20
