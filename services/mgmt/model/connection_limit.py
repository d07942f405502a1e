"""BrokerConnectionLimitProvider and VirtualHostConnectionLimitProvider: how many connections users may have."""

from __future__ import annotations

from services.mgmt.model.attribute import Operation, attribute
from services.mgmt.model.configured_object import ConfiguredObject

_RULE_BASED = "RuleBased"


class BrokerConnectionLimitProvider(ConfiguredObject):
    """Rules for all virtual hosts; each gateway counts its own connections."""

    parent_kind = "Broker"
    types = (_RULE_BASED,)

    rules: str = attribute("in the grammar of Broker-J's files of connection limits", mandatory=True, oversize=True)

    extract_rules = Operation("The rules as they were loaded", modifying=False, returns="String")


class VirtualHostConnectionLimitProvider(ConfiguredObject):
    """Rules of a virtual host, which count beside those of the broker."""

    parent_kind = "VirtualHost"
    types = (_RULE_BASED,)

    rules: str = attribute("in the grammar of Broker-J's files of connection limits", mandatory=True, oversize=True)

    extract_rules = Operation("The rules as they were loaded", modifying=False, returns="String")
