"""The description of one suite."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Repository:
    """A tag of a public repository."""

    project: str
    """As owner/name."""
    tag: str


@dataclass(frozen=True, slots=True)
class Sdist:
    """What is published as source on the index that pip is set up for, with its tests in it."""

    package: str


@dataclass(frozen=True, slots=True)
class Files:
    """Where a package of the system puts source and tests."""

    folder: str
    package: str


Source = Repository | Sdist | Files


@dataclass(frozen=True, slots=True)
class Suite:
    """A row of the table in `suites/table.py`."""

    name: str
    version: str
    kind: str
    """A key of `suites.kinds.KINDS`: how it is installed, run and read."""
    source: Source
    install: tuple[str, ...] = ()
    """What its tests want besides, as the kind's installer names it."""
    arguments: tuple[str, ...] = ()
    """What its runner is given: which of its tests want a broker."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """How it is told where the broker is; {host}, {port} and {url} are put in."""
    seconds: float = 300.0
    """After which a run is ended; what has not run by then has not passed."""
    default_port: bool = False
    """It cannot be told: the broker has to be at port 5672."""
    replaced: Mapping[str, str] = field(default_factory=dict)
    """Files in it that are of `suites/replaced`: its own want containers or packages of their own, or there is none."""
    virtual_hosts: tuple[str, ...] = ()
    users: Mapping[str, str] = field(default_factory=dict)
    """Names and passwords, besides guest."""
