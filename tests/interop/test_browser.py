"""AMQP from a page of the web, in a real browser, over WebSocket. Without chromium these tests fail."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.browser import serving_pages, visit
from tests.support.interop_pika import fetch
from tests.support.ports import free_port

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pika.adapters.blocking_connection import BlockingChannel

    from tests.support.browser import PageServer
    from tests.support.interop_address import BrokerAddress

PAGE = "amqp.html"


@pytest.fixture
def pages(page_port: int) -> Iterator[PageServer]:
    """Of the origin that may open a WebSocket."""
    with serving_pages(page_port) as server:
        yield server


@pytest.mark.parametrize("scheme", ["ws", "wss", "wss at AMQP's port"])
def test_a_page_of_the_web(
    scheme: str,
    pages: PageServer,
    broker: BrokerAddress,
    secure: BrokerAddress,
    certificate: Path,
    channel: BlockingChannel,
    name: str,
    tmp_path: Path,
) -> None:
    """Gets what pika has sent, and publishes half a megabyte with a confirm, which pika gets."""
    port = secure.port if scheme == "wss" else broker.port
    url = f"{scheme.partition(' ')[0]}://localhost:{port}/"
    channel.queue_declare(name, durable=True)
    channel.basic_publish("", name, "grüße".encode())
    asked = {"url": url, "queue": name, "user": broker.user, "password": broker.password, "times": 70_000}
    said = visit(pages, PAGE, tmp_path / "profile", certificate, **asked)
    assert said == {"got": "grüße", "code": 1000, "subprotocol": "amqp"}
    assert fetch(channel, name).body == "grüße".encode() * 70_000
    channel.queue_delete(name)


def test_a_page_of_another_origin(broker: BrokerAddress, tmp_path: Path) -> None:
    """Is refused before a byte of AMQP: the browser tells the page no more than that it failed."""
    with serving_pages(free_port()) as other:
        asked = {"url": f"ws://localhost:{broker.port}/", "queue": "q", "user": broker.user, "password": "?"}
        assert visit(other, PAGE, tmp_path / "profile", **asked) == {"error": "closed with 1006"}


def test_a_certificate_that_the_browser_does_not_trust(
    pages: PageServer, secure: BrokerAddress, tmp_path: Path
) -> None:
    """No page gets through to it."""
    asked = {"url": f"wss://localhost:{secure.port}/", "queue": "q", "user": "guest", "password": "?"}
    assert visit(pages, PAGE, tmp_path / "profile", **asked) == {"error": "closed with 1006"}
