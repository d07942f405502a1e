"""Failures of Spark as analyses tell of all that fails: in a line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from spark.errors import AnalysisError
from spark.room import is_full, no_room, scratch, with_room_in

_CALLING = "An error occurred while calling"  # py4j's first line, which says nothing of what happened


@contextmanager
def told_in_a_line(*folders: str) -> Iterator[None]:
    """Raises AnalysisError where Spark fails in the block, or has no room in `folders` or where it works."""
    try:
        with with_room_in(*folders):
            yield
    except (Py4JError, PySparkException) as error:
        if is_full(error):
            raise AnalysisError(no_room((*folders, scratch()))) from error
        raise AnalysisError(f"Spark failed: {_what_happened(str(error))}") from error


def _what_happened(text: str) -> str:
    lines = (line.strip(" :\t") for line in text.splitlines())
    return next((line for line in lines if line and not line.startswith(_CALLING)), "it does not say why")
