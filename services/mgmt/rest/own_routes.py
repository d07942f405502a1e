"""Hopline's own routes put together: who may ask for each, and where it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

from fastapi import APIRouter

from services.common.access.asked import Asked
from services.common.clients.capture import CaptureRules
from services.common.clients.dry_run import DryRuns
from services.common.clients.ports import Ports
from services.mgmt.access.grants import Grants
from services.mgmt.access.operations import CONFIGURE, OBSERVE
from services.mgmt.access.tested import Tester
from services.mgmt.lookup.lookup import LookUp
from services.mgmt.metrics.gather import Gathering
from services.mgmt.providers import Providers
from services.mgmt.rest.access import access_routes, group_changes, of_group
from services.mgmt.rest.basic import Basic, Doors, Naming
from services.mgmt.rest.capture import capture_routes
from services.mgmt.rest.late import Late, below
from services.mgmt.rest.metrics import metric_routes
from services.mgmt.rest.ports import port_changes, port_routes
from services.mgmt.rest.providers import provider_routes
from services.mgmt.rest.route import dry_run_routes
from services.mgmt.rest.scraper import Scraper
from services.mgmt.rest.trace import trace_routes
from services.mgmt.rest.users import of_user, user_changes, user_list
from services.mgmt.users import Users

Make = Callable[[Basic], APIRouter]
"""Routes, for those who come in by that door."""


class Shown(NamedTuple):
    """What the routes tell and change."""

    look_up: LookUp
    dry_runs: DryRuns
    capture_rules: CaptureRules
    ports: Ports
    grants: Grants
    tester: Tester
    providers: Providers
    users: Users
    gathering: Gathering


def own_routes(doors: Doors, shown: Shown) -> Iterator[Late]:
    """Those below /api, and /metrics."""
    for path, asked, make in _below_api(shown):
        yield _late(path, doors.to(asked), make)
    yield Late(below("/metrics"), lambda: metric_routes(Scraper(doors, OBSERVE), shown.gathering).routes)


def _late(path: str, door: Basic, make: Make) -> Late:
    return Late(below(f"/api{path}"), lambda: make(door).routes)


def _below_api(shown: Shown) -> Iterator[tuple[str, Asked | Naming, Make]]:
    yield "/trace", OBSERVE, partial(trace_routes, look_up=shown.look_up)
    yield "/route", OBSERVE, partial(dry_run_routes, dry_runs=shown.dry_runs)
    yield "/ports", OBSERVE, partial(port_routes, ports=shown.ports)
    yield "/capture", CONFIGURE, partial(capture_routes, look_up=shown.look_up, rules=shown.capture_rules)
    yield "/ports", CONFIGURE, partial(port_changes, ports=shown.ports)
    yield "/access", CONFIGURE, partial(access_routes, grants=shown.grants, tester=shown.tester)
    yield "/authentication-providers", CONFIGURE, partial(provider_routes, providers=shown.providers)
    yield "/access/users", CONFIGURE, partial(user_list, users=shown.users)
    yield "/access/users", of_user(shown.users), partial(user_changes, users=shown.users, grants=shown.grants)
    yield "/access/groups", of_group, partial(group_changes, grants=shown.grants)
