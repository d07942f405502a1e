"""SASL mechanisms (RFC 4422), plug-ins of group `sasl_mechanisms`: what a client sent becomes a claim to be judged.

A mechanism reads and writes messages, and nothing more. An authentication provider knows the users, its guard where
clients come from and how often they have failed (`services/common/authentication`): these judge the claim.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, Protocol

from services.common import plugins
from services.common.authentication.claims import Claim
from services.common.authentication.provider import Provider
from services.common.runtime import CannotStart
from services.common.scram import Keys

ANONYMOUS = "ANONYMOUS"
EXTERNAL = "EXTERNAL"


@dataclass(frozen=True, slots=True)
class Challenge:
    """The client has to say more."""

    data: bytes


class Directory(Protocol):
    """What the broker knows of its users, and of the client that signs in, as far as a mechanism may ask."""

    certified: str
    """The name in the client's certificate, which TLS has verified; "" where it showed none."""

    def keys_of(self, user: str, mechanism: str) -> Keys:
        """For any name: no password fits those of one that is no user, or has none.

        Raises TooManyFailures where no proof would be looked at.
        """


class Mechanism(ABC):
    """One exchange of one connection: a new instance for each."""

    discloses: ClassVar[bool] = False
    """Whether who listens on the way hears the password."""
    certified: ClassVar[bool] = False
    """Whether it is for clients that have shown a certificate."""

    def __init__(self, directory: Directory) -> None:
        self.directory = directory

    @abstractmethod
    def respond(self, response: bytes) -> Claim | Challenge:
        """What comes of the client's next message, which may be anything; raises SyntaxFault where it is none."""


def offered(wanted: Sequence[str], anonymous_user: str = "", *, certificates: bool = False) -> Sequence[str]:
    """The mechanisms that clients are offered, best first.

    Behind them comes EXTERNAL, where clients' `certificates` are asked for, and ANONYMOUS, where there is a user for
    it. Raises CannotStart for one that is not installed.
    """
    installed = plugins.names("sasl_mechanisms")
    unknown = [name for name in wanted if name not in installed]
    if unknown:
        there = ", ".join(installed)
        raise CannotStart(f"HOPLINE_SASL_MECHANISMS: there is no {', '.join(unknown)}; there are {there}")
    if ANONYMOUS in wanted and not anonymous_user:
        raise CannotStart(f"HOPLINE_SASL_MECHANISMS: {ANONYMOUS} needs HOPLINE_ANONYMOUS_USER, who such clients are")
    more = {EXTERNAL: certificates, ANONYMOUS: bool(anonymous_user)}
    names = [*wanted, *(name for name, there_is in more.items() if there_is and name not in wanted)]
    for name in names:
        plugins.load("sasl_mechanisms", name)  # now: to import one takes as long as messages should not have to wait
    return names


def judged_by(provider: Provider, names: Sequence[str]) -> tuple[str, ...]:
    """Those of `names` whose claims the provider judges, and those that it brings."""
    judged = [name for name in names if name in provider.mechanisms]
    return (*judged, *(name for name in provider.brings if name not in judged))


@lru_cache(100)
def usable(names: tuple[str, ...], *, private: bool, certified: bool) -> tuple[str, ...]:
    """Those that are for a connection on which nobody listens, or may, and whose client has a certificate, or none."""
    kinds: list[tuple[str, type[Mechanism]]] = [(name, plugins.load("sasl_mechanisms", name)) for name in names]
    return tuple(name for name, kind in kinds if (private or not kind.discloses) and (certified or not kind.certified))


def mechanism_named(name: str, directory: Directory) -> Mechanism:
    """A new exchange of the mechanism; raises UnknownPlugin."""
    mechanism: Mechanism = plugins.load("sasl_mechanisms", name)(directory)
    return mechanism
