"""Exchange: bindings are attributes of it, as in Broker-J since 7.0."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from services.mgmt.model.attribute import APART, SINCE, Operation, Parameter, Statistic, attribute, derived, resetting
from services.mgmt.model.configured_object import ConfiguredObject

_APART = f"{SINCE}, {APART.format('EXCHANGES')}"
_BINDING = {
    "destination": Parameter(str, mandatory=True),
    "bindingKey": Parameter(str, ""),
    "arguments": Parameter(dict, {}),
}


class Exchange(ConfiguredObject):
    """One exchange; the default one is none, as in Broker-J."""

    parent_kind = "VirtualHost"
    types = ("direct", "topic", "fanout", "headers")
    passing = True
    amqp_names: ClassVar[Mapping[str, str]] = {name: f"org.apache.qpid.{name.capitalize()}Exchange" for name in types}

    type: str = attribute("of those that are installed", mandatory=True, immutable=True)
    alternate_binding: dict[str, Any] = attribute(
        "{destination}: the exchange that gets what it routes nowhere", immutable=True
    )
    unroutable_message_behaviour: str = attribute(
        "as in Broker-J: what nobody gets is dropped", "DISCARD", valid=("DISCARD",), immutable=True
    )
    internal: bool = attribute("whether clients may not publish to it", False, immutable=True)
    arguments: dict[str, Any] = attribute("as it was declared with, beyond the others", {}, immutable=True)
    bindings: list[Any] = derived("name, bindingKey, destination and arguments of each")
    durable_bindings: list[Any] = derived("of these, those that outlive the stack")

    binding_count = Statistic("bindings that it has", "COUNT")
    messages_in = Statistic(f"messages published to it, {_APART}", cumulative=True)
    messages_dropped = Statistic(f"of these, those that no queue gets, {_APART}", cumulative=True)

    reset_statistics = resetting()
    bind = Operation(
        "Binds a queue, or another exchange; gives whether that is new",
        {**_BINDING, "replaceExistingArguments": Parameter(bool, False)},
        returns="Boolean",
    )
    unbind = Operation(
        "Removes what leads there with that key; gives whether there was any",
        {name: each for name, each in _BINDING.items() if name != "arguments"},
        returns="Boolean",
    )
