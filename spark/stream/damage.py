"""Files that a stream cannot read: passed over, and named; those that mgmt has merged meanwhile are read as that."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from spark.ledger.damaged import MOST_CHANGES, damaged_among, is_gone
from spark.ledger.files import LedgerFolder, place
from spark.ledger.soundness import Refused, Sound, sort_out
from spark.schema import STAGES, arrow_schema
from spark.stream.heads import hour_of, merged

_LOOKS, _LOOK_SECONDS = 5, 0.2


@dataclass(slots=True)
class Damage:
    """`refused` are all files that were passed over so far, with the reasons; `say` is told of each once."""

    say: Callable[[str], None]
    refused: dict[str, str] = field(default_factory=dict)

    def read(self, paths: Sequence[str], run: Callable[[Sequence[Sound], Collection[str]], None]) -> None:
        """Has `run` read those of the files that are sound, and tells it which are gone. What shows its damage only to
        Spark is left out then.
        """
        changes = 0
        while True:
            try:
                run(*self._sorted(paths))
            except (Py4JError, PySparkException) as error:
                if is_gone(str(error)) and changes < MOST_CHANGES:
                    changes += 1
                    continue
                found = (
                    damaged_among(str(error), place(paths[0]), [place(path).path for path in paths]) if paths else {}
                )
                if found.keys() <= self.refused.keys():
                    raise
                self._note(found)
            else:
                return

    def _sorted(self, paths: Sequence[str]) -> tuple[list[Sound], list[str]]:
        """The sound ones, under the names that they came with, and those that are gone."""
        if not paths:
            return [], []
        uris = {place(path).path: path for path in paths}
        sound, refused = sort_out(place(paths[0]), list(uris), arrow_schema(STAGES), self.refused)
        gone = [one.path for one in refused if one.is_gone]
        found = _merged_among(place(paths[0]), gone)
        self._note({one.path: one.reason for one in refused if one.path not in found})
        return [replace(one, path=uris[one.path]) for one in sound], sorted(found)

    def _note(self, found: dict[str, str]) -> None:
        for path, reason in found.items():
            if path not in self.refused:
                self.refused[path] = reason
                self.say(f"not read: {path}: {reason}")

    @property
    def files(self) -> list[Refused]:
        """As summaries tell of them: those since this process began."""
        return [Refused(path, reason) for path, reason in sorted(self.refused.items())]


def _merged_among(folder: LedgerFolder, gone: Sequence[str]) -> set[str]:
    """Those in whose hour are files that have been put together: for a moment there may be neither."""
    found: set[str] = set()
    for _ in range(_LOOKS if gone else 0):
        found = {path for path in gone if merged(folder, hour_of(path))}
        if len(found) == len(gone):
            break
        time.sleep(_LOOK_SECONDS)
    return found
