"""What a client claims when it signs in: made by SASL mechanisms, or from HTTP; verified by a provider."""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass, field

from services.common.scram import Keys


@dataclass(frozen=True, slots=True)
class Credentials:
    """A name, and the password to prove it."""

    user: str
    password: str = field(repr=False)

    @property
    def secret(self) -> str:
        """What must be kept secret of it."""
        return self.password


@dataclass(frozen=True, slots=True)
class Proof:
    """A name, and whether the client has proved it (SCRAM), provided that `keys` are still the user's."""

    user: str
    mechanism: str
    keys: Keys = field(repr=False)
    fits: bool
    final: bytes  # for the client, once it is accepted: proves that the broker knows the keys too


@dataclass(frozen=True, slots=True)
class Anonymous:
    """A client that claims no name; `trace` is what it says instead."""

    trace: str
    user = ""


@dataclass(frozen=True, slots=True)
class Certified:
    """The name in the client's certificate, which TLS has verified; "" without a certificate."""

    user: str


@dataclass(frozen=True, slots=True)
class Token:
    """A bearer token (RFC 6750), and the name sent with it, if any: the token itself names the user."""

    user: str
    token: str = field(repr=False)

    @property
    def secret(self) -> str:
        """What must be kept secret of it."""
        return self.token


@dataclass(frozen=True, slots=True)
class Digest:
    """A name, and a digest of its password and of the broker's challenge (CRAM-MD5)."""

    user: str
    mechanism: str
    asked: bytes
    digest: str

    def fits(self, password: str) -> bool:
        """Whether it was made with that password."""
        key = password.encode(errors="surrogatepass")
        return self.fits_key(md5(key).hex().encode() if self.mechanism == "CRAM-MD5-HEX" else key)

    def fits_key(self, key: bytes) -> bool:
        """Whether it was made with that key, which is the password or stands for it."""
        return hmac.compare_digest(hmac.new(key, self.asked, "md5").hexdigest(), self.digest)


def md5(data: bytes) -> bytes:
    """MD5, for protocols that need it; not secure for anything else."""
    return hashlib.md5(data, usedforsecurity=False).digest()


Claim = Credentials | Proof | Digest | Anonymous | Certified | Token

CRAM = frozenset({"CRAM-MD5", "CRAM-MD5-HEX"})

PASSWORDS = frozenset({"PLAIN", "AMQPLAIN"})
"""Mechanisms that send a name and its password."""

_MECHANISMS: dict[type, frozenset[str]] = {
    Credentials: PASSWORDS,
    Certified: frozenset({"EXTERNAL"}),
    Anonymous: frozenset({"ANONYMOUS"}),
    Token: frozenset({"XOAUTH2"}),
}


def mechanisms_of(claim: Claim) -> frozenset[str]:
    """The mechanisms from which the claim may have come."""
    return frozenset({claim.mechanism}) if isinstance(claim, Proof | Digest) else _MECHANISMS[type(claim)]
