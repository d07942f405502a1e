"""Connection, Session and Producer: of clients that are there now."""

from __future__ import annotations

from services.mgmt.model.attribute import APART, SINCE, Operation, Statistic, derived, resetting
from services.mgmt.model.configured_object import ConfiguredObject

_APART = f"{SINCE}, {APART.format('CONNECTIONS')}"


class Connection(ConfiguredObject):
    """Cannot be created here; its client opens it. To delete it closes it, and its client is told."""

    parent_kind = "VirtualHost"

    principal: str = derived("who signed in")
    remote_address: str = derived("host:port of the client")
    client_id: str = derived("what the application calls itself, or its user")
    port: str = derived("the name of the port by which it came")
    protocol: str = derived("what it speaks")
    gateway: str = derived("the gateway that it is on")

    session_count = Statistic("sessions, which AMQP 0-x calls channels", "COUNT")
    local_transaction_open = Statistic("sessions that have a transaction", "COUNT")
    last_io_time = Statistic("when bytes came or went last, heartbeats too: milliseconds since the Unix epoch", "TIME")
    last_used_time = Statistic("the same of what it asked for, and of messages that it was sent", "TIME")
    messages_in = Statistic(f"messages read whole from it, {_APART}", cumulative=True)
    messages_out = Statistic(f"messages written to it, {_APART}", cumulative=True)

    reset_statistics = resetting()


class Session(ConfiguredObject):
    """Of a connection: a channel of AMQP 0-x. It is called by its number."""

    parent_kind = "Connection"

    channel_id: int = derived("its number")
    prefetch: int = derived("deliveries that each of its next consumers may have unsettled; 0: any number")
    shared_prefetch: int = derived("the same of all its consumers together")
    confirms: bool = derived("whether publishes are confirmed")
    transactional: bool = derived("whether it has a transaction")

    consumer_count = Statistic("consumers", "COUNT")
    unacknowledged_messages = Statistic("deliveries that are not settled")

    get_consumers = Operation("Its consumers", modifying=False, returns="List")


class Producer(ConfiguredObject):
    """Of a session: a link by which it publishes; in AMQP 0-x, which has none, an exchange that it has published to."""

    parent_kind = "Session"

    session_id: str = derived("the session's")
    session_name: str = derived("its number")
    principal: str = derived("who signed in")
    remote_address: str = derived("host:port of the client")
    destination: str = derived("the exchange, or the queue of a link")
    destination_type: str = derived("what that is", valid=("EXCHANGE", "QUEUE"))
    delivery_type: str = derived("when messages are in their queues", valid=("STANDARD_DELIVERY",))

    messages_out = Statistic("messages published by it so far", cumulative=True)
    bytes_out = Statistic("bytes of their bodies", "BYTES", cumulative=True)
