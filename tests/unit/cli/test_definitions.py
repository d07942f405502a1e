"""What `hopline definitions` shows, and which URL it reads."""

from __future__ import annotations

import json
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from socket import create_server, socket
from threading import Thread

import pytest
from typer import Exit
from typer.testing import CliRunner

from services.__main__ import app
from services.cli.definitions import _fetched, _write
from services.cli.definitions_fetched import address_of, fetched, user_of, with_metadata
from services.cli.definitions_shown import lines
from services.common.clients.mgmt import MgmtClient
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
    """Definitions are where RabbitMQ has them, unless the URL has a path; the user is in it, or guest."""
    assert (address_of(url), user_of(url)) == (address, user)


class _Rabbit(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        known = self.headers["Authorization"] == "Basic dTpw"
        other = {"/moved": 301, "/away/api/vhosts": 503, "/api/definitions/api/vhosts": 503}
        self.send_response(other.get(self.path, 200 if known else 401))
        self.send_header("Location", "/api/definitions")
        self.end_headers()
        self.wfile.write(self.path.encode() if known else b"{}")

    def log_message(self, *_: object) -> None:
        pass


def test_fetched() -> None:
    """As the user who is named; a refusal is shown with its status, and redirects are not followed.

    What is not told of virtual hosts is warned of.
    """
    server = HTTPServer(("127.0.0.1", 0), _Rabbit)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        url, warnings = f"http://x:y@127.0.0.1:{server.server_port}", list[str]()
        assert fetched(url, "u", "p", warnings.append) == b"/api/definitions"
        assert not warnings
        with pytest.raises(OSError, match="401"):
            fetched(url, "u", "wrong")
        with pytest.raises(OSError, match="301"):
            fetched(f"{url}/moved", "u", "p")
        assert fetched(f"{url}/away/api/definitions", "u", "p", warnings.append) == b"/away/api/definitions"
        assert ["503" in line for line in warnings] == [True]
        fetched(f"{url}/api/definitions/api/definitions", "u", "p", warnings.append)
        assert len(warnings) == 2
    finally:
        server.shutdown()
        server.server_close()


def test_what_is_said_of_virtual_hosts() -> None:
    """Comes with definitions that lack it; what is no such thing is left as it is."""
    hosts = json.dumps(
        [{"name": "a", "metadata": {"description": "one"}}, {"name": "c", "metadata": {}}, {"name": "b"}]
    ).encode()
    given = {
        "vhosts": [{"name": "a", "metadata": None}, {"name": "b"}, {"name": "c", "metadata": {"tags": ["x"]}}],
        "queues": [],
    }
    expected = [{"name": "a", "metadata": {"description": "one"}}, *given["vhosts"][1:]]
    assert json.loads(with_metadata(json.dumps(given).encode(), hosts)) == {"vhosts": expected, "queues": []}
    for other in (b"", b"{}", b"[1]", b'{"vhosts": [7]}', b'{"vhosts": {"a": 1}}'):
        assert with_metadata(other, hosts) == other
    for other in (b"", b"{}", b'{"error": "x"}', b"[7]", b'[{"name": "a"}]', b'[{"name": [], "metadata": {}}]'):
        assert with_metadata(b'{"vhosts": [{"name": "a"}]}', other) == b'{"vhosts": [{"name": "a"}]}'


def _speaks_amqp(listening: socket) -> None:
    peer, _ = listening.accept()
    with peer:
        peer.recv(4096)
        peer.sendall(b"AMQP\x00\x00\x09\x01")


def test_what_is_no_management() -> None:
    """AMQP's port, and what is no address, are told in a line."""
    with create_server(("127.0.0.1", 0)) as listening:
        Thread(target=_speaks_amqp, args=(listening,), daemon=True).start()
        with pytest.raises(OSError, match="no address of RabbitMQ's management"):
            fetched(f"http://127.0.0.1:{listening.getsockname()[1]}", "u", "p")
    for url in ("http://u:p@rabbit:port", "http://u:p@[::1:15672"):
        with pytest.raises(Exit):
            _fetched(url, None)


def test_what_is_exported_is_for_its_owner(tmp_path: Path) -> None:
    """Also where there was a file that others could read; nothing else is left, and no link is broken."""
    there, link = tmp_path / "d.json", tmp_path / "link"
    there.write_text("old")
    there.chmod(0o644)
    link.symlink_to(there)
    _write(link, "new")
    assert (there.read_text(), there.stat().st_mode & 0o777) == ("new\n", 0o600)
    assert sorted(tmp_path.iterdir()) == [there, link]
    assert link.is_symlink()


def test_what_is_exported_to_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Says the same, and does nothing to it."""
    found = {"queues": [{"name": "a\x9bb\u202e\n\U000e0001"}]}

    async def export(_: MgmtClient, _virtual_host: str | None) -> bytes:
        return json.dumps(found).encode()

    monkeypatch.setattr(MgmtClient, "export_definitions", export)
    told = CliRunner().invoke(app.whole, ["definitions", "export"]).output
    assert json.loads(told) == found
    assert all(each == "\n" or each.isprintable() for each in told)
