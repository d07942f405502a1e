"""Whether the ports are free at which several gateways will listen: these mind nobody else who listens there."""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterator

from services.common.config import Settings
from services.common.runtime import CannotStart


def need_free_ports(settings: Settings) -> None:
    """Raises CannotStart when something listens already where gateways will."""
    for variable in ("amqp_port", *(("amqps_port",) if secured(settings) else ())):
        port = getattr(settings, variable)
        for family, kind, protocol, _, address in _addresses(settings.amqp_host, port):
            if tried := _socket(family, kind, protocol):
                with tried:
                    _try(tried, address, f"{settings.amqp_host or '*'} port {port}", f"HOPLINE_{variable.upper()}")


def secured(settings: Settings) -> bool:
    """Whether there is a port for TLS."""
    return bool(settings.tls_certificate or settings.tls_self_signed)


def _addresses(host: str, port: int) -> Iterator[tuple[int, int, int, str, tuple[object, ...]]]:
    try:
        yield from socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError:
        return  # gateways say so, who look it up again


def _socket(*kind: int) -> socket.socket | None:
    """None where the kernel does not know the family, as of IPv6 where that is switched off."""
    try:
        return socket.socket(*kind)
    except OSError:
        return None


def _try(tried: socket.socket, address: tuple[object, ...], where: str, variable: str) -> None:
    tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if tried.family == socket.AF_INET6:
        tried.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    try:
        tried.bind(address)
    except OSError as failure:
        if failure.errno == errno.EADDRINUSE:
            raise CannotStart(f"no AMQP on {where} ({failure.strerror}); set {variable}") from failure
