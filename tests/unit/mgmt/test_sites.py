"""Web pages that make a browser send requests, with the password that it knows."""

from __future__ import annotations

import asyncio
import base64

import pytest

from services.mgmt.rest.sites import NOT_FROM_PAGES, is_foreign
from services.mgmt.service import Service

_GUEST = base64.b64encode(b"guest:guest").decode()
_EVIL = "Origin: https://evil.example"


async def _asked(mgmt: Service, method: str, path: str, header: str) -> tuple[int, str]:
    """Status and body of what a browser asks that knows guest's password, as a page can have it do with a form."""
    reader, writer = await asyncio.open_connection("127.0.0.1", mgmt.http_port)
    lines = f"{method} {path} HTTP/1.1", f"Host: 127.0.0.1:{mgmt.http_port}", f"Authorization: Basic {_GUEST}", header
    writer.write("\r\n".join((*lines, "Content-Type: text/plain", "Content-Length: 2", "Connection: close")).encode())
    writer.write(b"\r\n\r\n{}")
    head, _, body = (await reader.read()).decode().partition("\r\n\r\n")
    writer.close()
    return int(head.split()[1]), body


@pytest.mark.parametrize("header", [_EVIL, "Origin: null", "Sec-Fetch-Site: cross-site", "Sec-Fetch-Site: same-site"])
@pytest.mark.parametrize("path", ["definitions", "latest/user/internal", "access/groups/a"])
async def test_pages_of_others(mgmt: Service, path: str, header: str) -> None:
    """Change nothing (403), and are told why."""
    for method in ("POST", "PUT", "DELETE"):
        status, body = await _asked(mgmt, method, f"/api/{path}", header)
        assert (status, NOT_FROM_PAGES in body) == (403, True)


@pytest.mark.parametrize("header", [_EVIL, "Sec-Fetch-Site: cross-site"])
async def test_what_changes_something_by_get(mgmt: Service, header: str) -> None:
    """Is refused as well: RabbitMQ's test that a broker is alive declares a queue."""
    status, body = await _asked(mgmt, "GET", "/api/aliveness-test/%2F", header)
    assert (status, NOT_FROM_PAGES in body) == (403, True), body


async def test_looking(mgmt: Service) -> None:
    """Is no change: a browser shows no page what another site answered."""
    assert (await _asked(mgmt, "GET", "/api/access", _EVIL))[0] == 200


@pytest.mark.parametrize(
    ("origin", "host", "foreign"),
    [
        (b"http://broker:8080", b"broker:8080", False),
        (b"https://Broker.example", b"broker.example", False),
        (b"https://broker.example", b"broker.example:443", False),
        (b"http://[::1]:8080", b"[::1]:8080", False),
        (b"http://broker:8081", b"broker:8080", True),
        (b"http://broker", b"broker:8080", True),
        (b"https://broker:80", b"broker", True),
        (b"null", b"", True),
        (b"", b"", True),
    ],
)
def test_the_site_of_a_page(origin: bytes, host: bytes, *, foreign: bool) -> None:
    """Is known by host and port; a proxy that ends TLS before mgmt changes the scheme only."""
    assert is_foreign({b"origin": origin, b"host": host}) == foreign


def test_clients_that_are_no_browsers() -> None:
    """Say nothing of pages; what a person types, or mgmt's own page asks, is no other site's."""
    for headers in ({}, {b"sec-fetch-site": b"none"}, {b"sec-fetch-site": b"same-origin"}):
        assert not is_foreign({b"host": b"broker", **headers})
