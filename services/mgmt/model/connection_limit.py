"""BrokerConnectionLimitProvider and VirtualHostConnectionLimitProvider: how many connections users may have."""

from __future__ import annotations

from services.mgmt.model.attribute import Operation, attribute, loading
from services.mgmt.model.configured_object import ConfiguredObject

_RULE_BASED = "RuleBased"


class BrokerConnectionLimitProvider(ConfiguredObject):
    """Rules for all virtual hosts; each gateway counts its own connections."""

    parent_kind = "Broker"
    types = (_RULE_BASED,)

    rules: str = attribute("in the grammar of Broker-J's files of connection limits", mandatory=True, oversize=True)

    load_from_file = loading("beside those that there are")
    clear_rules = Operation("Removes all rules, and with them the provider, which is there as long as it has some")
    extract_rules = Operation("The rules as they were loaded", modifying=False, returns="String")
    reset_counters = Operation("How often users have connected lately does not count any more")


class VirtualHostConnectionLimitProvider(ConfiguredObject):
    """Rules of a virtual host, which count beside those of the broker."""

    parent_kind = "VirtualHost"
    types = (_RULE_BASED,)

    rules: str = attribute("in the grammar of Broker-J's files of connection limits", mandatory=True, oversize=True)

    load_from_file = loading("beside those that there are")
    clear_rules = Operation("Removes all rules, and with them the provider, which is there as long as it has some")
    extract_rules = Operation("The rules as they were loaded", modifying=False, returns="String")
    reset_counters = Operation("How often users have connected lately does not count any more")
