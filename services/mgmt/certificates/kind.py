"""What types of key stores and trust stores can do: plug-ins of `hopline.key_stores` and `hopline.trust_stores`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, Protocol

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm

UNREADABLE: Final = (
    ValueError,
    UnsupportedAlgorithm,
    x509.DuplicateExtension,
    x509.InvalidVersion,
    x509.UnsupportedGeneralNameType,
)
"""What is raised of a certificate or a key that is none, or an odd one; of some parts not before they are looked at."""


class Named(NamedTuple):
    """A certificate, with what it is called in its store."""

    certificate: x509.Certificate
    alias: str = ""


class Kind(Protocol):
    """One type."""

    attributes: tuple[str, ...]
    """Of those of its category, what it wants to know."""
    url: str
    """The one of them that says where its certificates are; "" where they are in the store itself."""
    secret: frozenset[str]
    """Those of them that are encrypted on record."""

    def read(self, said: Mapping[str, str]) -> Sequence[Named]:
        """What is in it, of a key store that of the key first; waits for a disk.

        Raises IllegalConfiguration with the attribute that is wrong, and why; never with what is secret.
        """
