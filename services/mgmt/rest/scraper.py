"""Who may read metrics: users who may observe, or a scraper with the token of `HOPLINE_METRICS_TOKEN_FILE`.

That one is no user, so that it is let in while the store is away, which is when metrics are wanted most.
"""

from __future__ import annotations

import hmac
from pathlib import Path
from typing import Final

import structlog
from fastapi import Request
from fastapi.security.utils import get_authorization_scheme_param

from services.common.access.asked import Asked
from services.common.authentication.principal import Principal
from services.common.few_lines import FewLines
from services.mgmt.rest.basic import Basic, Doors

log = structlog.get_logger()

SHORTEST: Final = 16
"""Characters of a token: another one is none."""
_DO: Final = f"let mgmt read a file there with {SHORTEST} characters or more (HOPLINE_METRICS_TOKEN_FILE)"
_SCRAPER: Final = Principal("metrics", "token")


class Scraper(Basic):
    """A dependency of routes. The file is read each time: a token is changed without a restart."""

    def __init__(self, doors: Doors, asked: Asked) -> None:
        """A request with another token, or of a user, is judged as at any other route."""
        super().__init__(doors, asked)
        self._file = doors.metrics_token
        self._few = FewLines()

    async def __call__(self, request: Request) -> Principal:  # type: ignore[override]  # as Basic
        scheme, said = get_authorization_scheme_param(request.headers.get("Authorization"))
        if self._file is not None and scheme.lower() == "bearer" and self._is(said, self._file):
            return _SCRAPER
        return await super().__call__(request)

    def _is(self, said: str, file: Path) -> bool:
        try:
            token = file.read_text().strip()
        except (OSError, UnicodeDecodeError) as error:
            what = "the token for metrics cannot be read"
            self._few.say(log.warning, what, path=str(file), reason=str(error), do=_DO)
            return False
        if len(token) < SHORTEST:
            self._few.say(
                log.warning, "the token for metrics is too short, and is not accepted", path=str(file), do=_DO
            )
            return False
        return hmac.compare_digest(said.encode(), token.encode())
