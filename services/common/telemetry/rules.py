"""Rules that have messages traced, or never traced, whatever their publishers ask for; changed at run time.

Kept in the store as configuration records of kind `tracing_rule`; every gateway follows them.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from services.common.patterns import fits

RECORD_KIND = "tracing_rule"

_Pattern = str | None  # with * and ?; None: matches anything


class Rule(BaseModel):
    """One rule; all of its patterns must match. The record's key is the name, its value `to_json()`."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    name: str
    ratio: Annotated[float, Field(ge=0, le=1)] = 1.0
    """Share of the messages that are traced; 0: none, not even those that their publishers trace."""
    virtual_host: _Pattern = None
    exchange: _Pattern = None
    queue: _Pattern = None
    client: _Pattern = None
    message_id: _Pattern = None
    header: str | None = None
    header_value: _Pattern = None

    @property
    def looks_inside(self) -> bool:
        """Whether messages must be decoded to tell if it matches."""
        return self.message_id is not None or self.header is not None

    @property
    def conditions(self) -> dict[str, str]:
        """Its patterns, by name."""
        every = self.model_dump(exclude={"name", "ratio"}, exclude_none=True)
        return {name.replace("_", "-"): value for name, value in every.items()}

    def matches_run(self, virtual_host: str, exchange: str, queues: list[str], clients: list[str]) -> bool:
        """Whether messages with this exchange may match; `queues` get them, `clients` are the publisher's names."""
        return (
            _any_matches(self.virtual_host, [virtual_host])
            and _any_matches(self.exchange, [exchange])
            and _any_matches(self.queue, queues)
            and _any_matches(self.client, clients)
        )

    def to_json(self) -> bytes:
        """The record's value."""
        return self.model_dump_json(exclude_none=True).encode()

    @classmethod
    def from_json(cls, value: bytes) -> Rule:
        """The rule in a record's value; raises ValidationError when it is none."""
        return cls.model_validate_json(value)


def matches(pattern: str | None, value: object) -> bool:
    """Whether a value from a message fits a pattern; a missing value fits none."""
    if pattern is None:
        return True
    return value is not None and fits(str(value), pattern)


def _any_matches(pattern: str | None, values: list[str]) -> bool:
    return pattern is None or any(fits(value, pattern) for value in values)
