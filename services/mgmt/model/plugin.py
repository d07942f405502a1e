"""Plugin: what is installed of all that comes in kinds."""

from __future__ import annotations

from services.common import plugins
from services.mgmt.model.attribute import derived
from services.mgmt.model.configured_object import ConfiguredObject


class Plugin(ConfiguredObject):
    """One kind of its type: `exchange_types`, `sasl_mechanisms`, … It is called `type:chosenBy`."""

    parent_kind = "Broker"
    types = plugins.groups()

    chosen_by: str = derived("the name that chooses it: in the settings, in arguments, in protocols")
    implementation: str = derived("module:name")
    package: str = derived("that brings it")
    version: str = derived("of that package")
