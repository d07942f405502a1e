"""Variables whose names are nearly a setting's: nothing reads them, and who misspelt one would look for it elsewhere.

Other names that begin as settings do are let be: compose has variables of its own, and so may a shell.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

import structlog

from services.common.config import Settings

_PREFIX = "HOPLINE_"
_NEAR = 0.9  # a letter or two
_DO = "set the one that is near, if it is meant, and unset this one"

log = structlog.get_logger()


def warn_of_misspelt(variables: Iterable[str]) -> None:
    """Logs each that is nearly a setting's."""
    for variable, setting in misspelt(variables).items():
        log.warning("a variable is no setting, and has no effect", variable=variable, near=setting, do=_DO)


def misspelt(variables: Iterable[str]) -> dict[str, str]:
    """By name, the setting that may be meant. Names of settings may be in any letter case."""
    settings = {f"{_PREFIX}{name.upper()}" for name in Settings.model_fields}
    others = (name for name in sorted(variables) if name.upper().startswith(_PREFIX) and name.upper() not in settings)
    return {name: near[0] for name in others if (near := get_close_matches(name.upper(), settings, 1, _NEAR))}
