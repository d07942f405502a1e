"""What somebody claims who signs in: SASL mechanisms, and HTTP, make it of what was said; a provider judges it."""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass, field

from services.common.scram import Keys


@dataclass(frozen=True, slots=True)
class Credentials:
    """A name and the password that shall prove it."""

    user: str
    password: str = field(repr=False)

    @property
    def secret(self) -> str:
        """What nobody else must hear."""
        return self.password


@dataclass(frozen=True, slots=True)
class Proof:
    """A name, and whether what the client said proves it, as far as `keys` are still the user's."""

    user: str
    mechanism: str
    keys: Keys = field(repr=False)
    fits: bool
    final: bytes  # what the client is told with the good news: that the broker knows it too


@dataclass(frozen=True, slots=True)
class Anonymous:
    """Somebody who does not say who it is; `trace` is what it says instead."""

    trace: str
    user = ""


@dataclass(frozen=True, slots=True)
class Certified:
    """The name in the client's certificate, which TLS has verified; "" where it showed none."""

    user: str


@dataclass(frozen=True, slots=True)
class Token:
    """A bearer token (RFC 6750), and the name that was said with it, if any: who it is says the token."""

    user: str
    token: str = field(repr=False)

    @property
    def secret(self) -> str:
        """What nobody else must hear."""
        return self.token


@dataclass(frozen=True, slots=True)
class Digest:
    """A name, and what was made of its password and of what was asked, with CRAM-MD5."""

    user: str
    mechanism: str
    asked: bytes
    digest: str

    def fits(self, password: str) -> bool:
        """Whether it is of that password."""
        key = password.encode(errors="surrogatepass")
        return self.fits_key(md5(key).hex().encode() if self.mechanism == "CRAM-MD5-HEX" else key)

    def fits_key(self, key: bytes) -> bool:
        """Whether it is of what stands for a password in it."""
        return hmac.compare_digest(hmac.new(key, self.asked, "md5").hexdigest(), self.digest)


def md5(data: bytes) -> bytes:
    """Which is good for nothing else any more."""
    return hashlib.md5(data, usedforsecurity=False).digest()


Claim = Credentials | Proof | Digest | Anonymous | Certified | Token

CRAM = frozenset({"CRAM-MD5", "CRAM-MD5-HEX"})

PASSWORDS = frozenset({"PLAIN", "AMQPLAIN"})
"""Mechanisms that say a name and its password."""

_MECHANISMS: dict[type, frozenset[str]] = {
    Credentials: PASSWORDS,
    Certified: frozenset({"EXTERNAL"}),
    Anonymous: frozenset({"ANONYMOUS"}),
    Token: frozenset({"XOAUTH2"}),
}


def mechanisms_of(claim: Claim) -> frozenset[str]:
    """Those of which it may have come."""
    return frozenset({claim.mechanism}) if isinstance(claim, Proof | Digest) else _MECHANISMS[type(claim)]
