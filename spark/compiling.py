"""How far Java's compiler goes.

Its second stage makes code that is faster, and takes processor time for that: more than it saves, where there is little
to read. The first stage alone is what Java calls its quick start.
"""

from __future__ import annotations

from pyarrow import fs

from spark.ledger.files import place, size_of
from spark.run import Sources

QUICKLY = "-XX:TieredStopAtLevel=1"

_LARGE = 16 << 20  # bytes of files; a million rows


def java_options(sources: Sources, *, spans: bool = False, times: int = 1) -> str:
    """Options for Java, by the size of what is read so many times: of the ledger, or of `spans`."""
    return QUICKLY if _size(sources, spans=spans) * times < _LARGE else ""


def _size(sources: Sources, *, spans: bool) -> int:
    """Very many where nobody knows."""
    try:
        if spans:
            return sum(map(_size_of_folder, sources.spans))
        return size_of(place(sources.ledger), "stages", sources.since, sources.until)
    except (OSError, ValueError):
        return _LARGE


def _size_of_folder(where: str) -> int:
    folder = place(where)
    found = folder.system.get_file_info(fs.FileSelector(folder.path, allow_not_found=True, recursive=True))
    return sum(info.size for info in found if info.type == fs.FileType.File)
