"""Messages as Broker-J's `publishMessage` takes them."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from services.common.errors import BrokerError
from services.common.message import amqp_map
from services.mgmt.model.manageable_message import ManageableMessage, read

_NOW = 1_700_000_000_500  # 2023-11-14T22:13:20.5Z


def _read(**said: Any) -> ManageableMessage:
    return read({"address": "q", **said})


def test_all_that_can_be_said() -> None:
    """Is a property of AMQP 0-9-1, or a header that the queue understands."""
    message = _read(
        correlationId="c",
        appId="a",
        messageId=7,
        mimeType="text/html",
        encoding="identity",
        replyTo="r",
        persistent=True,
        priority=9,
        headers={"h": [1, {"x": 1.5}]},
        notValidBefore=_NOW,
        content="grüße",
    )
    assert (message.address, message.body, message.expires) == ("q", "grüße".encode(), None)
    assert message.properties == {
        "correlation_id": "c",
        "app_id": "a",
        "message_id": "7",
        "content_type": "text/html",
        "content_encoding": "identity",
        "reply_to": "r",
        "delivery_mode": 2,
        "priority": 9,
        "headers": {"h": [1, {"x": 1.5}], "x-qpid-not-valid-before": _NOW},
    }


def test_what_is_said_by_nobody() -> None:
    """Is not there; a message is not persistent then, as in Broker-J."""
    assert _read(content=None, headers=None).properties == {"delivery_mode": 1}


def test_when_it_is_sent() -> None:
    """Its user, its time, and how long it has left, which is never less than nothing."""
    assert _read().sent("anna", _NOW) == {"delivery_mode": 1, "timestamp": 1_700_000_000, "user_id": "anna"}
    assert _read(expiration=_NOW + 20).sent("anna", _NOW)["expiration"] == "20"
    assert _read(expiration=_NOW).sent("anna", _NOW + 1)["expiration"] == "0"
    assert "user_id" not in _read().sent("a" * 256, _NOW)


@pytest.mark.parametrize(
    "said", [_NOW, str(_NOW), "2023-11-14T22:13:20.500Z", "2023-11-14T23:13:20.5+01:00", "2023-11-14T22:13:20.5"]
)
def test_moments(said: object) -> None:
    """Are numbers, also as text, or written as ISO 8601, in UTC where no zone is said; 0 is none."""
    assert _read(expiration=said).expires == _NOW
    assert _read(expiration=0).expires is None
    assert _read(expiration="2023-11-14T22:13:20.123").expires == _NOW - 377


@pytest.mark.parametrize(
    ("content", "more", "body", "type_"),
    [
        ("x", {}, b"x", "text/plain"),
        ("{}", {"mimeType": "Application/JSON"}, b"{}", "Application/JSON"),
        ("x", {"contentTransferEncoding": "Identity "}, b"x", "text/plain"),
        (
            base64.b64encode(b"\xff").decode(),
            {"contentTransferEncoding": "Base64"},
            b"\xff",
            "application/octet-stream",
        ),
        ("eA==", {"contentTransferEncoding": "base64", "mimeType": "image/png"}, b"x", "image/png"),
        ({"a": 1}, {}, amqp_map.dump({"a": 1}), "amqp/map"),
        ([1, "b"], {}, amqp_map.dump([1, "b"]), "amqp/list"),
    ],
)
def test_content(content: object, more: dict[str, Any], body: bytes, type_: str) -> None:
    """A text, bytes as base64, a map or a list; its type is what is said, or what it is."""
    message = _read(content=content, **more)
    assert (message.body, message.properties["content_type"]) == (body, type_)


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ({"address": ""}, "attribute 'address' of the message: it is mandatory"),
        ({"nothing": 1}, "attribute 'nothing' of the message: there is none"),
        ({"priority": 256}, "attribute 'priority' of the message: 0 to 255, not 256"),
        ({"persistent": "perhaps"}, "attribute 'persistent' of the message: true or false is wanted"),
        ({"headers": [1]}, "attribute 'headers' of the message: a map is wanted"),
        ({"messageId": "é" * 128}, "attribute 'messageId' of the message: at most 255 bytes"),
        ({"expiration": "soon"}, "Cannot convert string 'soon' to a Date"),
        ({"expiration": True}, "Cannot convert string True to a Date"),
        ({"notValidBefore": -1}, "attribute 'notValidBefore' of the message: no moment"),
        ({"content": 1}, "The message content (if present) can only be a string, map or list"),
        ({"content": {}, "mimeType": "amqp/map"}, "the mime type and encoding must be left unset"),
        ({"content": [], "encoding": "gzip"}, "the mime type and encoding must be left unset"),
        ({"content": [2**70]}, ""),
        ({"content": "%", "contentTransferEncoding": "base64"}, "attribute 'content' of the message"),
        ({"content": "x", "contentTransferEncoding": "7bit"}, "contentTransferEncoding value '7bit' is invalid."),
        ({"content": "x", "mimeType": "image/png"}, "Only MIME types of the text type can be used"),
        ({"content": "x", "mimeType": "text/x; charset=utf-8"}, "must not include a charset parameter"),
    ],
)
def test_what_is_wrong(said: dict[str, Any], text: str) -> None:
    """Is named, of content in Broker-J's words."""
    with pytest.raises(BrokerError) as raised:
        _read(**said)
    assert text in raised.value.text
