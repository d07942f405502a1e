"""The routes below /api, and their description."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.metadata import version
from typing import Any

from fastapi import APIRouter, Depends, FastAPI

from services.common.clients.capture import CaptureRules
from services.common.clients.dry_run import DryRuns
from services.common.clients.ports import Ports
from services.mgmt.lookup.lookup import LookUp
from services.mgmt.rest.basic import Basic
from services.mgmt.rest.capture import capture_routes
from services.mgmt.rest.failures import answer_failures, documented
from services.mgmt.rest.ports import port_changes, port_routes
from services.mgmt.rest.route import dry_run_routes
from services.mgmt.rest.trace import trace_routes
from services.mgmt.users import Users

# Who may see what passes through all virtual hosts.
_OBSERVERS = ("administrator", "monitoring")
# Who may see what is in messages, and have it kept.
_ADMINISTRATORS = ("administrator",)


def application(users: Users, look_up: LookUp, dry_runs: DryRuns, rules: CaptureRules, ports: Ports) -> FastAPI:
    """For those of `users` who may observe."""
    app = FastAPI(title="Hopline", version=version("hopline"), docs_url=None, redoc_url=None)
    answer_failures(app)
    observer = Depends(Basic(users, _OBSERVERS))
    administrator = Depends(Basic(users, _ADMINISTRATORS))
    routers: Iterable[tuple[Any, Iterable[APIRouter]]] = (
        (observer, (trace_routes(look_up), dry_run_routes(dry_runs), port_routes(ports))),
        (administrator, (capture_routes(look_up, rules), port_changes(ports))),
    )
    for who, theirs in routers:
        for router in theirs:
            app.include_router(router, prefix="/api", dependencies=[who], responses=documented(401, 403))
    return app
