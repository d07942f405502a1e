"""What the types of objects are called in AMQP Management, of those that are in a virtual host. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from services.mgmt.model.attribute import Attribute
from services.mgmt.model.configured_object import ConfiguredObject
from services.mgmt.tree.tree import Tree

MANAGEMENT: Final = "org.amqp.management"
_PREFIX: Final = "org.apache.qpid."
_ABOVE: Final = ["virtualhostnode", "virtualhost"]
"""What each virtual host is below, itself included: its node is about that."""


class Type(NamedTuple):
    """All of a category, or those of it that are of one type."""

    category: str  # lower case
    kind: type[ConfiguredObject]
    qpid_type: str = ""

    def has(self, attribute: Attribute) -> bool:
        """Whether objects of it may have an attribute."""
        return not self.qpid_type or not attribute.types or self.qpid_type in attribute.types

    def fits(self, found: ConfiguredObject) -> bool:
        """Whether an object of the category is of it."""
        return self.qpid_type in {"", found.value("type")}


def name_of(kind: type[ConfiguredObject], qpid_type: str = "") -> str:
    """`org.apache.qpid.Queue`; of a type that has no name of its own, the category's."""
    return kind.amqp_names.get(qpid_type, f"{_PREFIX}{kind.category}")


def types_of(tree: Tree) -> Mapping[str, Type]:
    """By name, each category before its types."""
    found: dict[str, Type] = {}
    for category, keeper in sorted(tree.categories.items()):
        if tree.line(category)[: len(_ABOVE)] == _ABOVE:
            found[name_of(keeper.kind)] = Type(category, keeper.kind)
            found |= {name: Type(category, keeper.kind, its) for its, name in keeper.kind.amqp_names.items()}
    return found


def above(virtual_host: str) -> tuple[str, ...]:
    """Where a virtual host is in the tree: its node is called as it is."""
    return virtual_host, virtual_host
