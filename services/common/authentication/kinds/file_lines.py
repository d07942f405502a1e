"""Lines of files of users and groups, as Broker-J and htpasswd write them; and whether a password fits a line."""

from __future__ import annotations

import base64
import binascii
import hmac
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from services.common import credentials
from services.common.authentication.claims import CRAM, Digest, md5
from services.common.credentials import Whose

_NOBODY = "$argon2id$v=19$m=19456,t=3,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"


def read_users(path: Path) -> dict[str, str]:
    """Reads lines NAME:KEPT PASSWORD; raises ValueError with the number of a wrong line, never with its text."""
    users = {}
    for number, line in _lines(path):
        name, colon, kept = line.partition(":")
        if not name or not colon or not kept or name in users:
            raise ValueError(f"{path}, line {number}: NAME:PASSWORD is wanted, each name once")
        users[name] = kept
    return users


def read_groups(path: Path) -> dict[str, frozenset[str]]:
    """Reads lines GROUP.users=USER,USER; gives the groups of each user."""
    groups: dict[str, set[str]] = {}
    for number, line in _lines(path):
        left, equals, right = line.partition("=")
        group, dot, users = left.strip().rpartition(".")
        if not equals or not dot or not group or users.strip() != "users":
            raise ValueError(f"{path}, line {number}: GROUP.users=USER,USER is wanted")
        for user in filter(None, (each.strip() for each in right.split(","))):
            groups.setdefault(user, set()).add(group)
    return {user: frozenset(theirs) for user, theirs in groups.items()}


def fits(format_: str, kept: str | None, password: str, other: str = "") -> bool:
    """Whether that is the password; without a user as slow as an `other`'s kept password. Call it in a thread."""
    return _FORMATS[format_](kept or other, password) and kept is not None


def fits_digest(format_: str, kept: str | None, digest: Digest) -> bool:
    """Whether it was made with the password of that line."""
    if digest.mechanism not in DIGESTS[format_]:
        return False
    try:
        fits = digest.fits(kept or "") if format_ == "plain" else digest.fits_key(_hex(kept or ""))
    except binascii.Error:
        return False
    return fits and kept is not None


def _hex(kept: str) -> bytes:
    return base64.b64decode(kept, validate=True).hex().encode()


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    for number, said in enumerate(path.read_bytes().splitlines(), 1):
        try:
            line = said.decode()
        except UnicodeDecodeError:
            raise ValueError(f"{path}, line {number}: UTF-8 is wanted") from None
        if line.strip() and not line.startswith("#"):
            yield number, line


def _plain(kept: str | None, password: str) -> bool:
    return hmac.compare_digest((kept or "").encode(), password.encode(errors="surrogatepass"))


def _base64_md5(kept: str | None, password: str) -> bool:
    digest = md5(password.encode(errors="surrogatepass"))
    return hmac.compare_digest((kept or "").encode(), base64.b64encode(digest))


def _hashes(kept: str | None, password: str) -> bool:
    return credentials.fits(kept or _NOBODY, password, Whose(""))


_FORMATS: Mapping[str, Callable[[str | None, str], bool]] = {
    "plain": _plain,
    "base64-md5": _base64_md5,
    "hashes": _hashes,
}

DIGESTS: Mapping[str, frozenset[str]] = {
    "plain": CRAM,
    "base64-md5": frozenset({"CRAM-MD5-HEX"}),
    "hashes": frozenset(),
}
"""Mechanisms besides passwords, by format."""
