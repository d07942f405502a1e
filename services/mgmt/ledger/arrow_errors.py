"""Arrow's errors as Python's own, so that the filer need not import Arrow before there are rows."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pyarrow as pa


@contextlib.contextmanager
def as_known_errors() -> Iterator[None]:
    """Raises ValueError for errors of Arrow's own; one that is an OSError or a LookupError too stays that."""
    try:
        yield
    except (OSError, ValueError, LookupError):
        raise
    except pa.ArrowException as failure:
        raise ValueError(str(failure)) from failure
