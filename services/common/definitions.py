"""What became of definitions that were taken."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class LeftOut(BaseModel):
    """A thing that cannot be taken, or not as it is."""

    model_config = ConfigDict(frozen=True)

    kind: str = Field(description="section of the definitions, as queues")
    vhost: str = Field("", description="empty: in none")
    name: str
    reason: str
    here: bool = Field(False, description="whether it is here, but without what the reason names")


class Taken(BaseModel):
    """How much of each section is here now, and what is not."""

    taken: dict[str, int] = Field(default_factory=dict)
    left_out: list[LeftOut] = Field(default_factory=list)
