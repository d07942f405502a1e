"""SASL mechanisms (RFC 4422), plug-ins of group `sasl_mechanisms`: what a client sent becomes credentials."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from services.common import plugins
from services.common.runtime import CannotStart


@dataclass(frozen=True, slots=True)
class Credentials:
    """A name and the password that shall prove it."""

    user: str
    password: str


class Mechanism(Protocol):
    """One exchange of one connection: a new instance for each."""

    def respond(self, response: bytes) -> Credentials | bytes:
        """Credentials to be checked, or a challenge to be sent; raises SyntaxFault on a malformed response."""


def offered(wanted: Sequence[str]) -> Sequence[str]:
    """The mechanisms that clients are offered, best first. Raises CannotStart for one that is not installed."""
    installed = plugins.names("sasl_mechanisms")
    unknown = [name for name in wanted if name not in installed]
    if unknown:
        raise CannotStart(
            f"HOPLINE_SASL_MECHANISMS: there is no {', '.join(unknown)}; there are {', '.join(installed)}"
        )
    return wanted


def mechanism_named(name: str) -> Mechanism:
    """A new exchange of the mechanism; raises UnknownPlugin."""
    mechanism: Mechanism = plugins.load("sasl_mechanisms", name)()
    return mechanism
