"""Rules that have messages captured with properties and body, for a time and up to a size; there are none by default.

Kept in the store as configuration records of kind `capture_rule`; every gateway follows them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field

from services.common.patterns import fits

RECORD_KIND = "capture_rule"

LONGEST_SECONDS: Final = 24 * 3600
MOST_BYTES: Final = 64 << 20
MOST_BODY: Final = 256 << 10
"""Bytes: a message of that size is told in one piece (NATS takes 1 MiB)."""

_Pattern = Annotated[str | None, Field(max_length=255)]  # with * and ?; None: whatever it is


class Terms(BaseModel):
    """What is captured, and how much of it; all patterns must match.

    With a queue, what is sent to consumers of it and fetched from it, and `client` is who gets it; without one, what is
    published, and `client` is who does.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    virtual_host: _Pattern = None
    exchange: _Pattern = None
    key: _Pattern = None
    queue: _Pattern = None
    client: _Pattern = None
    seconds: Annotated[int, Field(ge=1, le=LONGEST_SECONDS, description="for so long")] = 600
    limit: Annotated[int, Field(ge=1, le=MOST_BYTES, description="bytes at most, in all gateways")] = 16 << 20
    body: Annotated[int, Field(ge=0, le=MOST_BODY, description="bytes of each body that are kept")] = 4096


class Rule(Terms):
    """One rule. The record's key is the name, its value `to_json()`."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    name: Annotated[str, Field(min_length=1, max_length=255)]
    made_ms: int
    """Unix, ms; one that replaces another begins to count anew."""

    @property
    def until_ms(self) -> int:
        """When it ends."""
        return self.made_ms + self.seconds * 1000

    @property
    def conditions(self) -> dict[str, str]:
        """What it asks for, by name."""
        named = {name.replace("_", "-"): getattr(self, name) for name in _PATTERNS}
        return {name: value for name, value in named.items() if value is not None}

    def is_about(self, virtual_host: str, queue: str, names: Sequence[str]) -> bool:
        """Whether it may match what is done there; `names` are those that the client has."""
        return (
            _fits(self.virtual_host, virtual_host)
            and _fits(self.queue, queue)
            and (self.client is None or any(fits(name, self.client) for name in names))
        )

    def matches(self, exchange: str, key: str) -> bool:
        """Whether it matches messages of an address."""
        return _fits(self.exchange, exchange) and _fits(self.key, key)

    def to_json(self) -> bytes:
        """The record's value."""
        return self.model_dump_json(exclude_none=True).encode()

    @classmethod
    def from_json(cls, value: bytes) -> Rule:
        """The rule in a record's value; raises ValidationError when it is none."""
        return cls.model_validate_json(value)


_PATTERNS = ("virtual_host", "exchange", "key", "queue", "client")


def _fits(pattern: str | None, value: str) -> bool:
    return pattern is None or fits(value, pattern)
