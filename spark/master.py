"""Whether a Spark master answers: Spark itself would ask for a minute, and then say so on a page."""

from __future__ import annotations

import socket

from spark.errors import MasterMissing

_SCHEME = "spark://"
_SECONDS = 5.0  # for each


def require_master(master: str) -> None:
    """Raises MasterMissing where nothing answers at any address of spark://host:port,…; other masters are not asked."""
    if not master.startswith(_SCHEME):
        return
    faults = [_fault(address) for address in master.removeprefix(_SCHEME).split(",")]
    if all(faults):
        raise MasterMissing(f"no Spark master answers at {master}: {faults[0]}")


def _fault(address: str) -> str:
    host, _, port = address.rpartition(":")
    if not (host and port.isdecimal()):
        return f"{address} is no host:port"
    try:
        with socket.create_connection((host.strip("[]"), int(port)), _SECONDS):
            return ""
    except (OSError, OverflowError) as error:
        return str(error)
