"""The public keys of an issuer (JWKS, RFC 7517): fetched when they are needed, and when a token names an unknown one.

While the issuer does not answer, its keys are good for their usual time, and no longer, as one may have been
withdrawn.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import urllib.request
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import jwt
import structlog

from services.common.authentication.asking import SILENT
from services.common.clock import monotonic
from services.common.errors import Unavailable
from services.common.few_lines import FewLines

if TYPE_CHECKING:
    from services.common.authentication.asking import Asking
    from services.common.authentication.kinds.oauth2 import OAuth2Options

log = structlog.get_logger()

_LARGEST = 1 << 20  # bytes of an answer
_AGAIN = 5.0  # seconds after which an unknown key is looked for again: clients can make up names of keys


class IssuersKeys:
    """The keys of one issuer."""

    def __init__(self, provider: str, options: OAuth2Options, asking: Asking) -> None:
        self.version = 0  # grows when the keys change
        self._provider = provider
        self._options = options
        self._asking = asking
        self._said: list[Any] = []
        self._keys: dict[str, jwt.PyJWK] = {}
        self._asked = float("-inf")
        self._one: asyncio.Future[None] | None = None
        self._few = FewLines(most=1)

    async def find(self, name: str) -> jwt.PyJWK | None:
        """The key of that name; without a name, the only key. Raises Unavailable where the issuer does not answer."""
        if self._is_old(self._options.keys_seconds):
            await self._ask()
        if self._named(name) is None and self._is_old(_AGAIN):
            await self._ask()
        return self._named(name)

    def _is_old(self, seconds: float) -> bool:
        return monotonic() - self._asked >= seconds

    def _named(self, name: str) -> jwt.PyJWK | None:
        if name or len(self._keys) != 1:
            return self._keys.get(name)
        [only] = self._keys.values()
        return only

    async def _ask(self) -> None:
        """Fetches the keys once for all tasks that wait; they fail together, and not one after the other."""
        if self._one is None or self._one.done():
            self._one = asyncio.ensure_future(self._ask_now())
            self._one.add_done_callback(_heard)
        await asyncio.shield(self._one)

    async def _ask_now(self) -> None:
        try:
            keys = await self._asking.ask(partial(_keys_at, self._options))
        except (OSError, ValueError, TypeError, AttributeError) as error:
            text = f"authentication provider '{self._provider}' does not answer: {type(error).__name__}"
            what, reason = "an issuer's keys cannot be read", str(error)
            self._few.say(log.warning, what, provider=self._provider, reason=reason, do=SILENT)
            raise Unavailable(text) from None
        self._asked = monotonic()
        self.version += keys != self._said
        self._said, self._keys = keys, _read_keys(keys)


def _heard(asked: asyncio.Future[None]) -> None:
    """Takes note of a failure that no task may wait for any more."""
    if not asked.cancelled():
        asked.exception()


def is_trusted(url: str, *, insecure: bool) -> bool:
    """Whether keys from this URL cannot be changed on the way: with keys of its own, an attacker could sign in."""
    parts = urlsplit(url)
    local = parts.hostname in {"localhost", "127.0.0.1", "::1"}
    return bool(parts.hostname) and (parts.scheme == "https" or (parts.scheme == "http" and (local or insecure)))


def _keys_at(options: OAuth2Options) -> list[Any]:
    at = options.keys_at
    if not options.jwks_url:
        said = _read(at, options)
        if said.get("issuer") != options.issuer:
            raise ValueError(f"at {at} there is another issuer")
        at = str(said.get("jwks_uri", ""))
    return list(_read(at, options).get("keys", []))


def _read_keys(said: list[Any]) -> dict[str, jwt.PyJWK]:
    """The keys for signatures, of kinds that we know."""
    keys = {}
    for each in said:
        if each.get("use", "sig") == "sig" and each.get("kty") in {"RSA", "EC", "OKP"}:
            with suppress(jwt.PyJWTError):
                keys[str(each.get("kid", ""))] = jwt.PyJWK(each)
    return keys


def _read(url: str, options: OAuth2Options) -> Mapping[str, Any]:
    if not is_trusted(url, insecure=options.insecure):
        raise ValueError(f"{url!r} is no URL with https://")
    context = ssl.create_default_context(cafile=options.authorities or None)
    opener = urllib.request.build_opener(urllib.request.HTTPSHandler(context=context), _NoRedirects)
    with opener.open(url, timeout=options.timeout) as answer:
        data = answer.read(_LARGEST + 1)
    if len(data) > _LARGEST:
        raise ValueError("its answer is too large")
    said: Any = json.loads(data)
    if not isinstance(said, dict):
        raise ValueError("its answer is no JSON object")  # noqa: TRY004 - the answer is wrong, not an argument
    return said


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Follows no redirects: only the options say where keys are."""

    def redirect_request(self, *_: object) -> None:
        return None
