"""Renames the files of a built store into the folder, in place of those of a former store, if there is one.

It renames file by file, and can fail or be killed between any two of them. So what is about to be done is written down
first, and undone from that: at once when it fails, or by the next restore. No store starts before.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

import structlog
from pydantic import BaseModel, ValidationError

from services.store.backup.file import sync_folder
from services.store.folder import UNFINISHED

_BUILT = "restoring-"

log = structlog.get_logger()


class Undertaking(BaseModel):
    """What `restore.unfinished` says: these were in the folder, and are put aside into another one in it."""

    present: list[str]
    aside: str


class StoreFolder:
    """A folder whose lock is held, and the names in it that a store consists of."""

    def __init__(self, folder: Path, files: Sequence[str]) -> None:
        self._folder = folder
        self._files = files
        self._unfinished = folder / UNFINISHED
        self._draft = folder / f"{UNFINISHED}.draft"

    def present(self) -> list[str]:
        """Names of a store's files that exist."""
        return [name for name in self._files if (self._folder / name).exists()]

    def building(self, token: str) -> Path:
        """The folder in which a store is built, before it is put in place."""
        return self._folder / f"{_BUILT}{token}"

    def recover(self) -> None:
        """Undoes a restore that was killed: the folder is as it was before. Raises OSError."""
        for left in self._folder.glob(f"{_BUILT}*"):
            shutil.rmtree(left, ignore_errors=True)
        self._draft.unlink(missing_ok=True)
        if not self._unfinished.exists():
            return
        try:
            begun = Undertaking.model_validate_json(self._unfinished.read_bytes())
        except ValidationError:
            return  # a former release wrote nothing into it: the files are taken to be those from before
        self._undo(begun)
        log.info("a restore that was not finished is undone", folder=str(self._folder))

    def put(self, new: Path, aside: str) -> Path | None:
        """Moves the files of `new` into the folder, and the present ones into its folder `aside`; gives that.

        Raises OSError, and then all is as it was; if that cannot be undone either, no store starts before `recover`.
        """
        begun = Undertaking(present=self.present(), aside=aside)
        try:
            self._write_down(begun)
            self._put_aside(begun)
            for name in self._files:
                if (new / name).exists():
                    (new / name).rename(self._folder / name)
            sync_folder(self._folder)
        except OSError:
            self._undo(begun)
            raise
        self._finish()
        return self._folder / aside if begun.present else None

    def _write_down(self, begun: Undertaking) -> None:
        """Writes the file whole or not at all."""
        with self._draft.open("w") as file:
            file.write(begun.model_dump_json())
            file.flush()
            os.fsync(file.fileno())
        self._draft.rename(self._unfinished)
        sync_folder(self._folder)

    def _put_aside(self, begun: Undertaking) -> None:
        if not begun.present:
            return
        aside = self._folder / begun.aside
        aside.mkdir(mode=0o700)
        for name in begun.present:
            (self._folder / name).rename(aside / name)
        sync_folder(aside)

    def _undo(self, begun: Undertaking) -> None:
        """Moves the files back. Done again it does the rest: what is not in `aside` is in place already."""
        aside = self._folder / begun.aside
        for name in self._files:
            if name not in begun.present:
                (self._folder / name).unlink(missing_ok=True)
            elif (aside / name).exists():
                (aside / name).replace(self._folder / name)
        if begun.present and aside.exists():
            aside.rmdir()
        self._finish()

    def _finish(self) -> None:
        sync_folder(self._folder)
        self._draft.unlink(missing_ok=True)
        self._unfinished.unlink(missing_ok=True)
        sync_folder(self._folder)
