"""The secret that the processes of one stack share: over the network they answer no caller without it.

On unix sockets the folder's mode keeps others out, and no secret is sent. Over TCP every call carries the secret in the
field `authorization`; health checks (grpc.health.v1) need none, as a container runtime cannot send it. The secret is
not encrypted on its way: it keeps out callers that can reach a port, not readers of the network's traffic, who see it
and may say it themselves.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

from services.common.config import Settings
from services.common.made_once import make_once
from services.common.runtime import CannotStart

FIELD = "authorization"
SHORTEST = 16  # characters

_NATS = b"nats"
_OPEN = "/grpc.health.v1.Health/"

_secret = ""
_find: Callable[[], str] | None = None

Fields = tuple[tuple[str, str], ...]


def use(secret: str) -> None:
    """From now on this process sends `secret` and asks callers for it; "" for none."""
    global _secret, _find
    _secret, _find = secret, None


def use_that_of(settings: Settings) -> None:
    """As `use`, with the secret of the stack.

    Its file is read, or made, at the first need: a process that calls no service over the network can do without.
    """
    global _find  # noqa: PLW0603 - one for the whole process is the point
    _find = partial(_that_of, settings)


def known() -> str:
    """The secret of this process. Raises CannotStart when its file cannot be read or made."""
    if _find is not None:
        use(_find())
    return _secret


def read_or_make(path: Path) -> str:
    """The secret in the file; a new one is written when there is no file. Raises CannotStart."""
    try:
        if not path.exists():
            make_once(path, secrets.token_hex(32))
        secret = path.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise CannotStart(f"HOPLINE_SECRET_FILE={path}: {error}") from error
    if len(secret) < SHORTEST or not (secret.isascii() and secret.isprintable()):
        raise CannotStart(f"HOPLINE_SECRET_FILE={path}: a secret has {SHORTEST} or more printable characters")
    return secret


def fields_for(address: str) -> Fields:
    """The metadata that a call to a gRPC target needs. Raises CannotStart, as `known`, for one over the network."""
    return () if address.startswith("unix:") or not known() else ((FIELD, f"Bearer {known()}"),)


def is_open(method: str) -> bool:
    """Whether `/package.Service/Method` may be called without the secret."""
    return method.startswith(_OPEN)


def is_said(fields: Iterable[tuple[str, str | bytes]], address: str) -> bool:
    """Whether a call that came to `address` has the secret, or needs none."""
    wanted = fields_for(address)
    if not wanted:
        return True
    said = next((value for name, value in fields if name == FIELD), "")
    return hmac.compare_digest(said if isinstance(said, bytes) else said.encode(), wanted[0][1].encode())


REFUSAL = "the caller does not say this stack's secret; HOPLINE_SECRET_FILE names the file that has it"


def nats_token() -> str:
    """The token for the stack's NATS, derived from the secret, so that NATS cannot give the secret away; "" for none.

    Raises CannotStart, as `known`.
    """
    return hmac.new(known().encode(), _NATS, hashlib.sha256).hexdigest() if known() else ""


def file_of_up(settings: Settings) -> Path:
    """The file in which `hopline up` puts the secret of its stack."""
    return settings.run_folder / "secret"


def _that_of(settings: Settings) -> str:
    return read_or_make(settings.secret_file) if settings.secret_file else _left_by_up(file_of_up(settings))


def _left_by_up(path: Path) -> str:
    try:
        there = path.exists()
    except OSError as error:
        raise CannotStart(f"cannot read the secret of the stack: {error}; ask as the user who runs it") from error
    return read_or_make(path) if there else ""
