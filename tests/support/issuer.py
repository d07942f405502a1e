"""An issuer of tokens, as a process of its own: keys of its own, its JWKS and its metadata over HTTP or HTTPS."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_PROGRAM = Path(__file__).with_name("issuer_program.py")


class Issuer:
    """A running issuer: tests ask it for tokens over its own pipe."""

    def __init__(self, certificate: Path | None = None) -> None:
        command = [sys.executable, str(_PROGRAM), *([str(certificate)] if certificate else [])]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.url: str = self._line()["url"]

    def token(self, **claims: Any) -> str:
        """Signed with its newest key; None for a claim leaves it out. `headers_` and `algorithm_` are of the header."""
        return str(self._ask("token", **claims)["token"])

    def rotate(self, algorithm: str = "RS256", *, keep: bool = False) -> None:
        """Another key signs from now on; the former ones are withdrawn, unless it is to `keep` them."""
        self._ask("rotate", algorithm=algorithm, keep=keep)

    def asked(self) -> int:
        """How often its keys were asked for."""
        return int(self._ask("asked")["asked"])

    def be_silent(self, silent: bool = True) -> None:
        """It takes connections, and answers none."""
        self._ask("silent", silent=silent)

    def stop(self) -> None:
        """Its port refuses from now on."""
        self._process.kill()
        self._process.communicate()

    def _ask(self, what: str, **about: Any) -> dict[str, Any]:
        assert self._process.stdin
        self._process.stdin.write(json.dumps({"what": what, **about}) + "\n")
        self._process.stdin.flush()
        return self._line()

    def _line(self) -> dict[str, Any]:
        assert self._process.stdout
        said: dict[str, Any] = json.loads(self._process.stdout.readline())
        return said


@contextmanager
def running_issuer(certificate: Path | None = None) -> Iterator[Issuer]:
    """With one key, of RS256."""
    issuer = Issuer(certificate)
    try:
        yield issuer
    finally:
        issuer.stop()
