"""What the types of objects are called in AMQP Management, of those that a node is about. Pure."""

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
SPACE: Final = "$management"
"""The virtual host whose node is about the whole broker, as Broker-J's address space of that name; if there is one."""


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


def types_of(tree: Tree, virtual_host: str = "") -> Mapping[str, Type]:
    """Of the node of a virtual host: by name, each category before its types."""
    found: dict[str, Type] = {}
    for category, keeper in sorted(tree.categories.items()):
        if virtual_host == SPACE or tree.line(category)[: len(_ABOVE)] == _ABOVE:
            found[name_of(keeper.kind)] = Type(category, keeper.kind)
            found |= {name: Type(category, keeper.kind, its) for its, name in keeper.kind.amqp_names.items()}
    return found


def above(virtual_host: str) -> tuple[str, ...]:
    """Where what its node is about is in the tree: a virtual host's node there is called as it is."""
    return () if virtual_host == SPACE else (virtual_host, virtual_host)


def itself(virtual_host: str) -> str:
    """The category of what is at that place."""
    return "broker" if virtual_host == SPACE else "virtualhost"
