"""What a whole stack says of itself, however it was started."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from http import HTTPStatus
from typing import Any

_AT = "http://127.0.0.1:{}/healthz"
_SECONDS = 5.0


class Healthz:
    """A stack that serves HTTP at `http_port` of this machine."""

    http_port: int

    def is_healthy(self) -> bool:
        """Whether it says that all of it is ready."""
        return self._answer()[0] == HTTPStatus.OK

    def health(self) -> dict[str, Any]:
        """The report of `/healthz`; empty while there is no answer."""
        return dict(json.loads(self._answer()[1]))

    def said_of(self, service: str) -> str:
        """Its report of a service; "" while there is no answer."""
        return str(self.health().get("services", {}).get(service, ""))

    def _answer(self) -> tuple[int, bytes]:
        """Status and body."""
        try:
            with urllib.request.urlopen(_AT.format(self.http_port), timeout=_SECONDS) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as answer:
            return answer.code, answer.read()
        except OSError:
            return 0, b"{}"
