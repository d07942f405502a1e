"""`${name}` in a text: variables, which may stand for texts with others in them. `$$` is a dollar."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Final

from services.mgmt.model.faults import IllegalConfiguration

_VARIABLE: Final = re.compile(r"\$(?:\{([^}]*)\}|(\$))")
_JSON: Final = "json:"
_LONGEST: Final = 1 << 16
# Who asks over HTTP is told no secret that the process was given.
_SECRET: Final = re.compile(
    r"^HOPLINE_|PASS|SECRET|TOKEN|KEY|CREDENTIAL|HEADERS|AUTH|COOKIE|DSN|URL|URI", re.IGNORECASE
)


def interpolated(text: str, look_up: Callable[[str], str | None], among: tuple[str, ...] = ()) -> str:
    """What `look_up` knows nothing of stays as it is. Raises IllegalConfiguration for a circle."""

    def stand_in(match: re.Match[str]) -> str:
        if match[2]:
            return "$"
        name: str = match[1]
        if name.startswith(_JSON):
            return json.dumps(interpolated("${" + name.removeprefix(_JSON) + "}", look_up, among))[1:-1]
        if name in among:
            raise IllegalConfiguration(f"variables that stand for each other: {' → '.join((*among, name))}")
        found = look_up(name)
        return match[0] if found is None else interpolated(found, look_up, (*among, name))

    result = _VARIABLE.sub(stand_in, text)
    if len(result) > _LONGEST:
        raise IllegalConfiguration(f"with its variables it has more than {_LONGEST} characters")
    return result


def visible(environment: Mapping[str, str]) -> dict[str, str]:
    """Those variables of the environment that may be told: none that is, or may hold, a secret."""
    return {name: value for name, value in environment.items() if not _SECRET.search(name)}
