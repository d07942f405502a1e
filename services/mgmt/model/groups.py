"""GroupProvider, Group, GroupMember: users that rules name together."""

from __future__ import annotations

from services.mgmt.model.attribute import Statistic
from services.mgmt.model.configured_object import ConfiguredObject


class GroupProvider(ConfiguredObject):
    """There is one, which keeps groups on record: a mapping, no other can be created."""

    parent_kind = "Broker"
    types = ("ManagedGroupProvider",)


class Group(ConfiguredObject):
    """One group."""

    parent_kind = "GroupProvider"
    types = ("ManagedGroup",)

    member_count = Statistic("users in it", "COUNT")


class GroupMember(ConfiguredObject):
    """A user's name, in one group."""

    parent_kind = "Group"
    types = ("ManagedGroupMember",)
