"""That somebody is not let in: one text for every reason that a peer may not learn, and the reason for who may."""

from __future__ import annotations

from services.common.errors import AccessRefused

REFUSED = "login was refused; check user name and password"


class Refused(AccessRefused):
    """By a provider."""

    def __init__(self, reason: str) -> None:
        """`reason` is for the audit log: nothing secret is in it."""
        super().__init__(REFUSED)
        self.reason = reason


class TooManyFailures(AccessRefused):
    """Refused without a look at what was said; the log has said so once, for all of them."""


def reason_of(error: Exception) -> str:
    """Why, for those who may know."""
    return error.reason if isinstance(error, Refused) else str(error)
