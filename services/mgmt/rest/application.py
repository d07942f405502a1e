"""All routes, and their description."""

from __future__ import annotations

from fastapi import FastAPI

from services.common.release import RELEASE
from services.mgmt.rabbitmq.sections import Broker
from services.mgmt.rest.basic import Doors
from services.mgmt.rest.described import describe
from services.mgmt.rest.failures import answer_failures
from services.mgmt.rest.model.routes import model_routes
from services.mgmt.rest.own_routes import Shown, own_routes
from services.mgmt.rest.rabbitmq.paths import RawPaths
from services.mgmt.rest.rabbitmq.routes import rabbitmq_routes
from services.mgmt.rest.sites import OwnSite
from services.mgmt.rest.text_paths import TextPaths
from services.mgmt.stack_health import StackHealth
from services.mgmt.tree.tree import Tree


def application(doors: Doors, shown: Shown, health: StackHealth, tree: Tree, broker: Broker) -> FastAPI:
    """For those who come in by the `doors`: each route has its own."""
    app = FastAPI(title="Hopline", version=RELEASE, openapi_url=None)
    answer_failures(app)
    describe(app)
    app.router.routes += [
        *own_routes(doors, shown),
        *model_routes(doors, tree, "/api"),
        *rabbitmq_routes(doors, broker, health),
    ]
    app.add_middleware(RawPaths)
    app.add_middleware(OwnSite)
    app.add_middleware(TextPaths)
    return app
