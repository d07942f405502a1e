"""Where a peer is, for people."""

from __future__ import annotations


def written(address: tuple[str, int]) -> str:
    """host:port, of what a socket says of its peer; an IPv6 address in brackets."""
    host, port = address[:2]  # IPv6 has more
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
