"""Port: where gateways, and management, listen."""

from __future__ import annotations

from services.common import plugins
from services.mgmt.model.attribute import Statistic, attribute, derived
from services.mgmt.model.configured_object import ConfiguredObject

TRANSPORTS = ("TCP", "SSL", "WS")
PROTOCOLS = ("AMQP_0_8", "AMQP_0_9", "AMQP_0_9_1", "AMQP_1_0", "HTTP")


def _mechanisms() -> tuple[str, ...]:
    return plugins.names("sasl_mechanisms")


class Port(ConfiguredObject):
    """One port. Those of the settings change with the settings only."""

    parent_kind = "Broker"
    types = ("AMQP", "HTTP")

    port: int = attribute("its number", mandatory=True)
    binding_address: str = attribute("address, or name, to listen on; *: everywhere", "*")
    protocols: list[str] = attribute("what is spoken there; 0-8, 0-9 and 0-9-1 go together", valid=PROTOCOLS)
    transports: list[str] = attribute("what a client may begin with", list(TRANSPORTS), valid=TRANSPORTS)
    authentication_provider: str = attribute("who judges who signs in there; none: as the settings say")
    mechanisms: list[str] = attribute("SASL mechanisms that are offered there; none: all", [], valid=_mechanisms)
    max_open_connections: int = attribute("at once, in each gateway; -1: as the gateway says", -1)
    unsecured_passwords: bool = attribute("whether passwords may come unencrypted from other machines")
    key_store: str = derived("what TLS shows there; a name that a client asks for may choose another of the settings'")
    trust_stores: list[str] = derived("by which clients' certificates are taken there")
    bound_to: list[str] = derived("host:port of each socket that listens")
    trouble: list[str] = derived("which gateway does not listen, or not as it should, and why")

    connection_count = Statistic("clients that came by it and have opened a virtual host", "COUNT")
    connection_limit = Statistic("connections at once, of all gateways together; 0: as gateways say", "COUNT")
