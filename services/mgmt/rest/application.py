"""The routes below /api, and their description."""

from __future__ import annotations

from collections.abc import Iterable

from fastapi import APIRouter, Depends, FastAPI

from services.common.access.asked import Asked
from services.common.clients.capture import CaptureRules
from services.common.clients.dry_run import DryRuns
from services.common.clients.ports import Ports
from services.common.release import RELEASE
from services.mgmt.access.grants import Grants
from services.mgmt.access.operations import CONFIGURE, OBSERVE
from services.mgmt.access.tested import Tester
from services.mgmt.lookup.lookup import LookUp
from services.mgmt.metrics.gather import Gathering
from services.mgmt.providers import Providers
from services.mgmt.rabbitmq.sections import Broker
from services.mgmt.rest.access import access_routes, group_changes, of_group
from services.mgmt.rest.basic import Doors, Naming
from services.mgmt.rest.capture import capture_routes
from services.mgmt.rest.described import describe
from services.mgmt.rest.failures import answer_failures, documented
from services.mgmt.rest.metrics import metric_routes
from services.mgmt.rest.model.routes import category_routes, general_routes, service_routes
from services.mgmt.rest.own import own_doors
from services.mgmt.rest.ports import port_changes, port_routes
from services.mgmt.rest.providers import provider_routes
from services.mgmt.rest.rabbitmq.paths import RawPaths
from services.mgmt.rest.rabbitmq.routes import rabbitmq_routes
from services.mgmt.rest.route import dry_run_routes
from services.mgmt.rest.scraper import Scraper
from services.mgmt.rest.sites import OwnSite
from services.mgmt.rest.text_paths import TextPaths
from services.mgmt.rest.trace import trace_routes
from services.mgmt.rest.users import of_user, user_changes, user_list
from services.mgmt.stack_health import StackHealth
from services.mgmt.tree.tree import Tree
from services.mgmt.users import Users


def application(
    doors: Doors,
    look_up: LookUp,
    dry_runs: DryRuns,
    rules: CaptureRules,
    ports: Ports,
    grants: Grants,
    tester: Tester,
    providers: Providers,
    users: Users,
    health: StackHealth,
    gathering: Gathering,
    tree: Tree,
    broker: Broker,
) -> FastAPI:
    """For those who come in by the `doors`: each route has its own."""
    app = FastAPI(title="Hopline", version=RELEASE, openapi_url=None)
    answer_failures(app)
    describe(app)
    routers: Iterable[tuple[Asked | Naming, Iterable[APIRouter]]] = (
        (OBSERVE, (trace_routes(look_up), dry_run_routes(dry_runs), port_routes(ports))),
        (CONFIGURE, (capture_routes(look_up, rules), port_changes(ports), access_routes(grants, tester))),
        (CONFIGURE, (provider_routes(providers), user_list(users))),
        (of_user(users), (user_changes(users, grants),)),
        (of_group, (group_changes(grants),)),
    )
    for asked, theirs in routers:
        door = doors.to(asked)
        for router in theirs:
            own_doors(app, router, door)
            who = [Depends(door)]
            app.include_router(router, prefix="/api", dependencies=who, responses=documented(400, 401, 403, 422))
    for each in general_routes(doors, tree):
        app.include_router(each, prefix="/api")
    app.router.routes.extend(category_routes(doors, tree, "/api"))
    app.include_router(service_routes(doors, tree))
    app.include_router(metric_routes(gathering), dependencies=[Depends(Scraper(doors, OBSERVE))])
    app.router.routes.append(rabbitmq_routes(doors, broker, health))
    app.add_middleware(RawPaths)
    app.add_middleware(OwnSite)
    app.add_middleware(TextPaths)
    return app
