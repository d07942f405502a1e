"""What a world is made of, and how rough its weather is without any fault."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Shape:
    """Sizes and rates. The defaults are a small cluster on a quiet network; times are virtual seconds."""

    gateways: int = 2
    routers: int = 2
    queue_processes: int = 3
    partitions: int = 6
    filing: bool = False  # whether mgmt's filer runs: it writes real files, which costs more than all the rest
    lease_ttl_ms: int = 1000
    place_ttl_ms: int = 1500
    queue_memory: int = 64 << 20
    heartbeat: int = 0
    delay: float = 0.0003  # of the network, one way, in the mean; at least a third of it
    silent: float = 0.0  # share of the deaths of which no kernel tells the peers
    spikes: float = 0.01  # share of the deliveries that take up to a hundred times as long
    splits: float = 0.1  # share of the deliveries that come in pieces
    window: int = 64 << 10  # bytes that a connection takes before its reader has read them
    commit: float = 0.002  # seconds of the disk for one commit, in the mean
    apart: bool = False  # whether the store keeps configuration in another place than messages
    turn: int = 0  # messages that a queue does in one turn of what may be a great many; 0: as many as it does
    restart: float = 0.5  # after which a process that ended by itself is started again
    reuse_addresses: bool = True  # a process that starts may get the address that another one had
    shares: bool = False  # whether gateways share memory with queue processes, for bodies of any size
