"""A real browser without a window, and the server that its pages are from."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import queue
import shutil
import signal
import subprocess
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

if TYPE_CHECKING:
    from collections.abc import Iterator

COMMAND = "chromium"
PAGES = Path(__file__).with_name("pages")
SECONDS = 60.0

_FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-dev-shm-usage", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-extensions",
    "--no-proxy-server",
)  # fmt: skip


class PageServer:
    """Serves the pages from `http://localhost:port`, and takes what they say."""

    def __init__(self, port: int, pages: Path) -> None:
        self._folders = PAGES, pages
        self.results: queue.Queue[dict[str, Any]] = queue.Queue()
        self.origin = f"http://localhost:{port}"
        self._server = ThreadingHTTPServer(("127.0.0.1", port), self._handler())

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        results, folders = self.results, self._folders

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                name = Path(self.path.partition("?")[0]).name
                found = next((folder / name for folder in folders if (folder / name).exists()), None)
                if name.endswith(".html") and found:
                    self._answer(200, found.read_bytes())
                else:
                    self._answer(404, b"")

            def do_POST(self) -> None:
                results.put(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                self._answer(200, b"")

            def log_message(self, *_: object) -> None:
                """Not into the output of tests."""

            def _answer(self, status: int, body: bytes) -> None:
                self.send_response(status)
                self.send_header("Content-Type", "text/html; charset=utf-8")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        return Handler

    def start(self) -> None:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@contextmanager
def serving_pages(port: int, pages: Path = PAGES) -> Iterator[PageServer]:
    """Those of this folder, and of `pages`."""
    server = PageServer(port, pages)
    server.start()
    try:
        yield server
    finally:
        server.stop()


def visit(server: PageServer, page: str, profile: Path, trusted: Path | None = None, **asked: object) -> dict[str, Any]:
    """Opens a page in a browser of its own, and gives what the page says; `trusted` is a certificate that it takes."""
    assert shutil.which(COMMAND), f"{COMMAND} is not installed (Debian: apt install chromium)"
    flags = [*_FLAGS, f"--user-data-dir={profile}"]
    if trusted:
        flags.append(f"--ignore-certificate-errors-spki-list={_key_hash(trusted)}")
    with (profile.with_suffix(".log")).open("wb") as log:
        command = [COMMAND, *flags, f"{server.origin}/{page}?{urlencode(asked)}"]
        browser = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, start_new_session=True)
    try:
        return server.results.get(timeout=SECONDS)
    except queue.Empty:
        raise AssertionError(profile.with_suffix(".log").read_text(errors="replace")[-3000:]) from None
    finally:
        os.killpg(browser.pid, signal.SIGKILL)  # with its children, in a session of their own
        browser.wait()


def _key_hash(certificate: Path) -> str:
    key = x509.load_pem_x509_certificate(certificate.read_bytes()).public_key()
    public = key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return base64.b64encode(hashlib.sha256(public).digest()).decode()
