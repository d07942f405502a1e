"""Files that a stream cannot read: passed over, and named."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from spark.ledger.damaged import damaged_among
from spark.ledger.files import place
from spark.ledger.soundness import Refused, Sound, sort_out
from spark.schema import STAGES, arrow_schema


@dataclass(slots=True)
class Damage:
    """`refused` are all files that were passed over so far, with the reasons; `say` is told of each once."""

    say: Callable[[str], None]
    refused: dict[str, str] = field(default_factory=dict)

    def read(self, paths: Sequence[str], run: Callable[[Sequence[Sound]], None]) -> None:
        """Has `run` read those of the files that are sound. What shows its damage only to Spark is left out then."""
        while True:
            try:
                run(self._sound(paths))
            except (Py4JError, PySparkException) as error:
                found = (
                    damaged_among(str(error), place(paths[0]), [place(path).path for path in paths]) if paths else {}
                )
                if found.keys() <= self.refused.keys():
                    raise
                self._note(found)
            else:
                return

    def _sound(self, paths: Sequence[str]) -> list[Sound]:
        """Under the names that they came with."""
        if not paths:
            return []
        uris = {place(path).path: path for path in paths}
        sound, refused = sort_out(place(paths[0]), list(uris), arrow_schema(STAGES), self.refused)
        self._note({one.path: one.reason for one in refused})
        return [replace(one, path=uris[one.path]) for one in sound]

    def _note(self, found: dict[str, str]) -> None:
        for path, reason in found.items():
            if path not in self.refused:
                self.refused[path] = reason
                self.say(f"not read: {path}: {reason}")

    @property
    def files(self) -> list[Refused]:
        """As summaries tell of them: those since this process began."""
        return [Refused(path, reason) for path, reason in sorted(self.refused.items())]
