"""AccessControlProvider, of the broker and of a virtual host: what decides what users may do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from services.common import plugins
from services.mgmt.model.attribute import Operation, attribute, loading
from services.mgmt.model.configured_object import ConfiguredObject

RULE_BASED = "RuleBased"


def _types() -> tuple[str, ...]:
    return (RULE_BASED, *(name for name in plugins.names("access_control") if name != "acl"))


class AccessControlProvider(ConfiguredObject):
    """One of those that HOPLINE_ACCESS_CONTROL names, in their order. Rules can be loaded for one that is RuleBased."""

    parent_kind = "Broker"
    types = _types()

    priority: int = attribute("the lowest is asked first", immutable=True)
    rules: str = attribute("in the grammar of Broker-J's ACL files", "", oversize=True)

    load_from_file = loading("in place of those that there are")
    extract_rules = Operation("The rules as they were loaded", modifying=False, returns="String")


class VirtualHostAccessControlProvider(ConfiguredObject):
    """Rules of a virtual host, which are asked before those of the broker."""

    parent_kind = "VirtualHost"
    types = (RULE_BASED,)
    amqp_names: ClassVar[Mapping[str, str]] = {RULE_BASED: "org.apache.qpid.RuleBaseVirtualHostAccessControlProvider"}

    rules: str = attribute("in the grammar of Broker-J's ACL files", mandatory=True, oversize=True)

    load_from_file = loading("in place of those that there are")
    extract_rules = Operation("The rules as they were loaded", modifying=False, returns="String")
