"""The secret that the processes of one stack share: over the network they answer nobody who does not say it.

On unix sockets the folder's mode keeps others out, and nothing is said. Over TCP every call carries the secret in the
field `authorization`; health checks (grpc.health.v1) do without, since those who start containers cannot say it.
It is not encrypted on its way: it keeps out who can reach a port, not who reads the network's traffic.
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
    """From now on this process says `secret` and wants to hear it; "" for none."""
    global _secret, _find
    _secret, _find = secret, None


def use_that_of(settings: Settings) -> None:
    """As `use`, with the secret of the stack.

    Its file is read, or made, when it is asked for first: who talks to nobody over the network can do without.
    """
    global _find  # noqa: PLW0603 - one for the whole process is the point
    _find = partial(_that_of, settings)


def known() -> str:
    """The secret that this process says. Raises CannotStart when its file cannot be read or made."""
    if _find is not None:
        use(_find())
    return _secret


def read_or_make(path: Path) -> str:
    """What the file says; a new secret is put there when there is no file. Raises CannotStart."""
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
    """What a call to a gRPC target has to say. Raises CannotStart, as `known`, where that is over the network."""
    return () if address.startswith("unix:") or not known() else ((FIELD, f"Bearer {known()}"),)


def is_open(method: str) -> bool:
    """Whether anybody may call `/package.Service/Method`, who says no secret."""
    return method.startswith(_OPEN)


def may_call(method: str, fields: Iterable[tuple[str, str | bytes]], address: str) -> bool:
    """Whether a call of `/package.Service/Method` that came to `address` said what it has to."""
    return is_open(method) or is_said(fields, address)


def is_said(fields: Iterable[tuple[str, str | bytes]], address: str) -> bool:
    """Whether a call that came to `address` said the secret, or there is none to be said."""
    wanted = fields_for(address)
    if not wanted:
        return True
    said = next((value for name, value in fields if name == FIELD), "")
    return hmac.compare_digest(said if isinstance(said, bytes) else said.encode(), wanted[0][1].encode())


REFUSAL = "the caller does not say this stack's secret; HOPLINE_SECRET_FILE names the file that has it"


def nats_token() -> str:
    """What NATS of this stack wants to hear: it is told another one, so that it cannot give ours away. "" for none.

    Raises CannotStart, as `known`.
    """
    return hmac.new(known().encode(), _NATS, hashlib.sha256).hexdigest() if known() else ""


def file_of_up(settings: Settings) -> Path:
    """Where `hopline up` puts the secret of the stack that it runs."""
    return settings.run_folder / "secret"


def _that_of(settings: Settings) -> str:
    return read_or_make(settings.secret_file) if settings.secret_file else _left_by_up(file_of_up(settings))


def _left_by_up(path: Path) -> str:
    try:
        there = path.exists()
    except OSError as error:
        raise CannotStart(f"cannot read the secret of the stack: {error}; ask as the user who runs it") from error
    return read_or_make(path) if there else ""
