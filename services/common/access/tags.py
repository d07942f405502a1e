"""What each user tag allows beyond messaging, as RabbitMQ's do.

https://www.rabbitmq.com/docs/management#permissions
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from services.common.access.action import Action, Kind

ADMINISTRATOR: Final = "administrator"
MONITORING: Final = "monitoring"
POLICYMAKER: Final = "policymaker"
MANAGEMENT: Final = "management"
KNOWN: Final = (ADMINISTRATOR, MONITORING, POLICYMAKER, MANAGEMENT)

_ADMINISTRATORS: Final = frozenset({ADMINISTRATOR})
_OBSERVERS: Final = frozenset({ADMINISTRATOR, MONITORING})
_BEYOND_THAT: Final[Mapping[tuple[Action, Kind], frozenset[str]]] = {
    # Ask mgmt anything.
    (Action.ACCESS, Kind.MANAGEMENT): frozenset(KNOWN),
    # Set policies of a virtual host.
    (Action.CONFIGURE, Kind.VIRTUALHOST): frozenset({ADMINISTRATOR, POLICYMAKER}),
    # See the traffic of all virtual hosts.
    (Action.ACCESS_LOGS, Kind.BROKER): _OBSERVERS,
}


def tags_for(action: Action, kind: Kind) -> frozenset[str]:
    """The tags of which a user needs one."""
    return _BEYOND_THAT.get((action, kind), _ADMINISTRATORS)
