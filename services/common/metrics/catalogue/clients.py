"""Connections and sign-ins: of gateways, and of mgmt for clients over HTTP."""

from __future__ import annotations

from typing import Final

from services.common.metrics.instrument import counter, gauge

CONNECTIONS: Final = gauge("hopline.connections", "{connection}", "Clients that have opened a virtual host.")
CONNECTIONS_OPENED: Final = counter(
    "hopline.connections.opened", "{connection}", "Clients that have opened a virtual host, since the start."
)
CONNECTIONS_CLOSED: Final = counter(
    "hopline.connections.closed", "{connection}", "Clients that had opened a virtual host and are gone."
)
COMING: Final = gauge(
    "hopline.connections.coming", "{connection}", "Sockets whose clients have not opened a virtual host yet."
)
CONNECTIONS_LIMIT: Final = gauge("hopline.connections.limit", "{connection}", "How many clients the gateway accepts.")
BLOCKED: Final = gauge("hopline.connections.blocked", "{connection}", "Clients that are told to publish nothing now.")
HELD: Final = gauge("hopline.connections.held", "{connection}", "Clients whose sockets are not read at the moment.")
SESSIONS: Final = gauge("hopline.sessions", "{session}", "Channels of AMQP 0-9-1, sessions of AMQP 1.0.")
SIGN_INS: Final = counter("hopline.sign_ins", "{attempt}", "Attempts to sign in.", "outcome")
DENIED: Final = counter("hopline.access.denied", "{request}", "Requests of users that were not allowed.")

ALL: Final = (
    CONNECTIONS, CONNECTIONS_OPENED, CONNECTIONS_CLOSED, COMING, CONNECTIONS_LIMIT, BLOCKED, HELD, SESSIONS, SIGN_INS,
    DENIED,
)  # fmt: skip
