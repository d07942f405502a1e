"""An event as it is published: its service and instance, its time, and its number."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from services.common.bus.facts import Facts

VERSION = 1


class Event(BaseModel):
    """JSON on the wire. `version` changes when what a field means does; fields and kinds may come without that."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    version: int = VERSION
    time_ms: int  # since the Unix epoch, by the publishing instance's clock
    service: str
    instance: str  # one run of one process
    origin: int  # of the uids that the instance gives; 0 for services that give none
    sequence: int  # 1, 2, … within the instance; a gap record has that of the event after the gap
    facts: Facts

    def to_json(self) -> bytes:
        """The payload to publish."""
        return self.model_dump_json().encode()

    @classmethod
    def from_json(cls, payload: bytes) -> Event:
        """Raises ValidationError (a ValueError) for a kind that this release does not know: skip the event then."""
        return cls.model_validate_json(payload)
