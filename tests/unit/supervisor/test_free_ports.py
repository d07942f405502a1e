"""Ports at which several gateways will listen are tried before they start."""

from __future__ import annotations

import errno
import os
import socket
from typing import Any

import pytest

from services.common.config import Settings
from services.common.runtime import CannotStart
from services.supervisor.free_ports import need_free_ports
from tests.support.ports import free_port


def test_somebody_listens_there() -> None:
    """The variable is named with which to choose another one."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        settings = Settings(amqp_host="127.0.0.1", amqp_port=other.getsockname()[1])
        with pytest.raises(CannotStart, match=r"Address already in use.*HOPLINE_AMQP_PORT"):
            need_free_ports(settings)


def test_without_ipv6(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the kernel knows no IPv6 the other addresses are tried, as gateways listen at them alone."""
    known = socket.socket

    def unknown(family: int = -1, *more: Any) -> socket.socket:
        if family == socket.AF_INET6:
            raise OSError(errno.EAFNOSUPPORT, os.strerror(errno.EAFNOSUPPORT))
        return known(family, *more)

    monkeypatch.setattr(socket, "socket", unknown)
    need_free_ports(Settings(amqp_port=free_port()))
