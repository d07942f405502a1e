"""Files whose footers are sound, and whose pages are not: Spark ends at the first of them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from urllib.parse import unquote

from spark.ledger.files import LedgerFolder, files_of, place
from spark.ledger.soundness import damage
from spark.schema import TABLES

MOST_CHANGES = 5
"""How often files may be merged while they are read: each table of an hour once."""

_GONE = ("FAILED_READ_FILE.FILE_NOT_EXIST", "PATH_NOT_FOUND")
# What rows come to that nobody wrote: in functions of ours, and in Spark's. No file is named then.
_OF_ROWS = ("Python worker", "COLLECTION_SIZE_LIMIT_EXCEEDED")
_NAMED = re.compile(r"FAILED_READ_FILE.*? while reading file (.+?\.parquet)")


def is_gone(failure: str) -> bool:
    """Whether Spark has failed because a file that was listed is not there any more."""
    return any(words in failure for words in _GONE)


def damaged_files(failure: str, ledger: str, since: datetime | None, until: datetime | None) -> dict[str, str]:
    """With the reasons: all that there are, and those that Spark names; none where it failed for another reason."""
    if not _may_be_damage(failure):
        return {}
    folder = place(ledger)
    paths = [path for table in TABLES for path in files_of(folder, table, since, until)]
    return damaged_among(failure, folder, paths)


def damaged_among(failure: str, folder: LedgerFolder, paths: Sequence[str]) -> dict[str, str]:
    """The same of some files."""
    if not _may_be_damage(failure):
        return {}
    named = {unquote(uri) for uri in _NAMED.findall(failure)}
    of_spark = {path: "damaged: Spark cannot read it" for path in paths if unquote(folder.uri(path)) in named}
    return of_spark | damage(folder, paths)


def _may_be_damage(failure: str) -> bool:
    return any(words in failure for words in _OF_ROWS) or bool(_NAMED.search(failure))
