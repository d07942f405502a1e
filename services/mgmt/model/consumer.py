"""Consumer: of a queue, by its connection and tag."""

from __future__ import annotations

from services.mgmt.model.attribute import derived
from services.mgmt.model.configured_object import ConfiguredObject


class Consumer(ConfiguredObject):
    """Cannot be created here; its client does that. Its name is `connection|tag`."""

    parent_kind = "Queue"

    link_name: str = derived("the tag that its client chose")
    session: str = derived("the connection that it is on")
    distribution_mode: str = derived("COPY only browses", valid=("MOVE", "COPY"))
    settlement_mode: str = derived("AUTO: what it is sent is settled by that", valid=("AUTO", "MANUAL"))
    exclusive: bool = derived("whether it has the queue to itself")
    priority: int = derived("those of the highest are served first")
    non_live: bool = derived("whether it is held in reserve until another is gone (maximumLiveConsumers)")
    suspended: bool = derived("whether it has no credit")
