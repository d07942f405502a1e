"""Metrics of mgmt: of itself, and of the processes that it asks."""

from __future__ import annotations

from typing import Final

from services.common.metrics.instrument import counter, gauge, histogram

UP: Final = gauge("hopline.up", "", "1 for a process that has answered with its metrics, else 0.")
HEALTHY: Final = gauge("hopline.healthy", "", "1 while `GET /healthz` answers 200, else 0.")
INFO: Final = gauge(
    "hopline.build.info", "", "1; its labels say which release runs.", "version", prometheus="hopline_build_info"
)
FILED: Final = gauge("hopline.ledger.filed", "", "1 while the record of messages can be filed, else 0.")
HTTP: Final = histogram(
    "http.server.request.duration",
    "s",
    "Duration of requests over HTTP.",
    (0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0),
    "http.request.method",
    "http.response.status_code",
)
HTTP_CONNECTIONS: Final = gauge("hopline.http.connections", "", "Connections over HTTP.")
HTTP_LIMIT: Final = gauge("hopline.http.connections.limit", "", "Connections over HTTP at most.")
HTTP_ENDED: Final = counter(
    "hopline.http.connections.ended",
    "{connection}",
    "Connections over HTTP beyond the limit: refused, or closed for another one as they were idle.",
    "outcome",
)

ALL: Final = (UP, HEALTHY, INFO, FILED, HTTP, HTTP_CONNECTIONS, HTTP_LIMIT, HTTP_ENDED)
