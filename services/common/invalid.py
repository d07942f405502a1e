"""What is wrong with values, as pydantic finds it, in words for whoever said them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

_OURS = "Value error, "
"""What pydantic puts before the words of a validator of this project."""


def words(fault: Mapping[str, Any]) -> str:
    """Of one."""
    return str(fault["msg"]).removeprefix(_OURS)


def told(faults: Iterable[Mapping[str, Any]]) -> str:
    """Of all, each with where it is; never with what was said there."""
    return "; ".join(": ".join(filter(None, (".".join(map(str, each["loc"])), words(each)))) for each in faults)
