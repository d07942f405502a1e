"""Spark's own account of a stream, in its checkpoint: which batches are done, and which files each has.

A batch that is asked for its files opens each of them. One that is gone would end the stream, and so would the same
batch after every restart.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pyarrow import fs

from spark.ledger.files import place


@dataclass(frozen=True, slots=True)
class Account:
    """Of the checkpoint of a stream that reads files, and nothing else."""

    checkpoint: str

    def last_batch(self) -> int | None:
        """The number of the last one that is done; None before the first."""
        there = place(f"{self.checkpoint}/commits")
        infos = there.system.get_file_info(fs.FileSelector(there.path, allow_not_found=True))
        return max((int(info.base_name) for info in infos if info.base_name.isdecimal()), default=None)

    def files(self, batch: int) -> list[str]:
        """The files of a batch that has begun, as URIs, in order."""
        begin, end = (self._offset(number) for number in (batch - 1, batch))
        return sorted(path for number in range(begin + 1, end + 1) for path in self._listed(number))

    def _offset(self, batch: int) -> int:
        """Up to which listing of files a batch reads."""
        if batch < 0:
            return -1
        *_, offset = _lines(f"{self.checkpoint}/offsets/{batch}")
        return int(offset["logOffset"])

    def _listed(self, number: int) -> Iterator[str]:
        listing = f"{self.checkpoint}/sources/0/{number}"
        for entry in _lines(listing, f"{listing}.compact"):  # this one has those before it, too
            if entry["batchId"] == number:
                yield entry["path"]


def _lines(*names: str) -> list[dict[str, Any]]:
    """Of the first of the files that is there, without its version."""
    places = [place(name) for name in names]
    there = next(one for one in places if one.system.get_file_info(one.path).type == fs.FileType.File)
    with there.system.open_input_stream(there.path) as file:
        return [json.loads(line) for line in file.read().decode().splitlines()[1:]]
