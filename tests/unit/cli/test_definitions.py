"""What `hopline definitions` shows, and whom it asks."""

from __future__ import annotations

from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest

from services.cli.definitions_fetched import address_of, fetched, user_of
from services.cli.definitions_shown import lines
from services.common.definitions import LeftOut, Taken


def test_lines() -> None:
    """How much there is, and each thing that is not, where and why; what others wrote does nothing to a terminal."""
    gone = LeftOut(kind="queues", vhost="/", name="log\x1b[2J", reason="streams")
    told = list(lines(Taken(taken={"queues": 2, "topic_permissions": 1, "users": 0}, left_out=[gone])))
    assert told[:2] == ["taken: 2 queues, 1 topic permissions", "not taken, or not as it was: 1"]
    assert told[2].startswith("  queues: log")
    assert told[2].endswith(" in vhost /: streams")
    assert "\x1b" not in told[2]


@pytest.mark.parametrize(
    ("url", "address", "user"),
    [
        ("http://rabbit:15672", "http://rabbit:15672/api/definitions", ("guest", "")),
        ("https://a%40b:p%2Fw@rabbit/", "https://rabbit/api/definitions", ("a@b", "p/w")),
        ("http://u@rabbit/old/api/definitions/%2F", "http://rabbit/old/api/definitions/%2F", ("u", "")),
    ],
)
def test_urls(url: str, address: str, user: tuple[str, str]) -> None:
    """Definitions are where RabbitMQ has them, unless the URL says where; who asks is in it, or guest."""
    assert (address_of(url), user_of(url)) == (address, user)


class _Rabbit(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        known = self.headers["Authorization"] == "Basic dTpw"
        self.send_response(301 if self.path == "/moved" else 200 if known else 401)
        self.send_header("Location", "/api/definitions")
        self.end_headers()
        self.wfile.write(self.path.encode() if known else b"{}")

    def log_message(self, *_: object) -> None:
        pass


def test_fetched() -> None:
    """As the user who is named; a refusal is told with its status, and nobody is followed elsewhere."""
    server = HTTPServer(("127.0.0.1", 0), _Rabbit)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        url = f"http://x:y@127.0.0.1:{server.server_port}"
        assert fetched(url, "u", "p") == b"/api/definitions"
        with pytest.raises(OSError, match="401"):
            fetched(url, "u", "wrong")
        with pytest.raises(OSError, match="301"):
            fetched(f"{url}/moved", "u", "p")
    finally:
        server.shutdown()
        server.server_close()
