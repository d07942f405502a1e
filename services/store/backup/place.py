"""The change of names by which a built store takes the place of the one in the folder, if there is one.

It goes from name to name, and can fail or be killed between any two of them. So what is about to be done is written
down first, and undone from that: at once when it fails, or by the restore that is done next. No store starts before.
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


class Place:
    """A folder whose lock is held, and the names in it that a store consists of."""

    def __init__(self, folder: Path, files: Sequence[str]) -> None:
        self._folder = folder
        self._files = files
        self._unfinished = folder / UNFINISHED
        self._draft = folder / f"{UNFINISHED}.draft"

    def present(self) -> list[str]:
        """Names of a store that is there."""
        return [name for name in self._files if (self._folder / name).exists()]

    def building(self, token: str) -> Path:
        """Where a store is built, before it is put in place."""
        return self._folder / f"{_BUILT}{token}"

    def recover(self) -> None:
        """What a restore that was killed has left is as it was before. Raises OSError."""
        for left in self._folder.glob(f"{_BUILT}*"):
            shutil.rmtree(left, ignore_errors=True)
        self._draft.unlink(missing_ok=True)
        if not self._unfinished.exists():
            return
        try:
            begun = Undertaking.model_validate_json(self._unfinished.read_bytes())
        except ValidationError:
            return  # of a release that wrote nothing into it: what is there is taken for what was there
        self._undo(begun)
        log.info("a restore that was not finished is undone", folder=str(self._folder))

    def put(self, new: Path, aside: str) -> Path | None:
        """The files of `new` come here, and those that are here go to the folder `aside` in this one; gives that.

        Raises OSError, and then all is as it was; where it cannot even be, no store starts before `recover`.
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
        """Whole, or not at all."""
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
        """Done again it does the rest: what is in `aside` was here, and so was what else was present."""
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
