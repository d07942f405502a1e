"""What keeps the store of a chaos run, by HOPLINE_CHAOS_STORE: a file, a database with a standby, or three servers."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import yaml

from tests.support.chaos.account import CUT, KILL, PAUSE
from tests.support.compose_stack import ROOT
from tests.support.store_disturbances import SERVERS

_BASE = "docker-compose.yml"
_TWO = {"HOPLINE_STORE_PROCESSES": "2"}


@dataclass(frozen=True, slots=True)
class Kept:
    """Compose files that have the services, what compose would be told besides, and the servers that keep the store."""

    name: str
    files: tuple[str, ...]
    told: dict[str, str]
    servers: tuple[str, ...]

    @property
    def stores(self) -> tuple[str, ...]:
        """The names of the store's processes."""
        return ("store-1", "store-2") if self.servers else ("store",)

    @property
    def deck(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """Disturbances besides those of every stack."""
        return tuple((kind, self.servers) for kind in (KILL, PAUSE, CUT) if self.servers)

    def services(self) -> dict[str, dict[str, Any]]:
        """All services, as compose puts them together from several files."""
        found: dict[str, dict[str, Any]] = {}
        for file in self.files:
            for name, said in yaml.safe_load(_interpolated((ROOT / file).read_text(), self.told))["services"].items():
                former = found.get(name, {})
                both = {**(former.get("environment") or {}), **(said.get("environment") or {})}
                found[name] = {**former, **said, "environment": both}
        return found


def _interpolated(text: str, told: dict[str, str]) -> str:
    """`${NAME:-default}` and `${NAME-default}` as compose reads it where only this is told; `$$` is `$`."""
    return re.sub(r"\$\{(\w+):?-([^}]*)\}", lambda found: told.get(found[1], found[2]), text).replace("$$", "$")


STORES = {
    each.name: each
    for each in (
        Kept("sqlite", (_BASE,), {}, ()),
        Kept("postgres", (_BASE, "deploy/postgres/compose.yaml"), _TWO, ("postgres", "postgres-standby")),
        Kept("jetstream", (_BASE,), {**_TWO, "HOPLINE_STORE_URL": f"nats://{','.join(SERVERS)}"}, SERVERS),
    )
}
