"""Refused sign-ins: one text for every reason that a peer may not learn, and the reason for the audit log."""

from __future__ import annotations

from services.common.errors import AccessRefused

REFUSED = "login was refused; check user name and password"


class Refused(AccessRefused):
    """A provider refused the sign-in."""

    def __init__(self, reason: str) -> None:
        """`reason` is for the audit log: it must hold no secret."""
        super().__init__(REFUSED)
        self.reason = reason


class TooManyFailures(AccessRefused):
    """Refused without verifying the password; the log says so once for all of them."""


def reason_of(error: Exception) -> str:
    """The reason, for the audit log."""
    return error.reason if isinstance(error, Refused) else str(error)
