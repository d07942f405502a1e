"""Ports: users who may observe see where gateways listen, administrators add and remove ports."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter
from fastapi import Path as InPath

from services.common.clients.ports import Ports
from services.common.ports.port import Port, Terms
from services.common.ports.state import Listed
from services.mgmt.rest.basic import Basic
from services.mgmt.rest.failures import documented
from services.mgmt.rest.own import own_router

_Name = Annotated[str, InPath(min_length=1, max_length=255, description="of the port")]


def port_routes(door: Basic, ports: Ports) -> APIRouter:
    """GET /ports."""
    router = own_router(door, "ports")

    @router.get("/ports", responses=documented(503), summary="Where gateways listen")
    async def list_ports() -> list[Listed]:
        """Every port, those of the settings first, with the gateways that serve it, or why one does not."""
        return await ports.ports()

    return router


def port_changes(door: Basic, ports: Ports) -> APIRouter:
    """Below /ports."""
    router = own_router(door, "ports", "/ports")

    @router.put("/{name:names}", responses=documented(409, 503), summary="Add or replace a port")
    async def put_port(name: _Name, terms: Terms) -> Port:
        """Adds a port, or replaces the one of that name; gateways act on it a moment later, and `GET` shows how."""
        return await ports.put(name, terms)

    @router.delete("/{name:names}", status_code=204, responses=documented(404, 503), summary="Remove a port")
    async def remove_port(name: _Name) -> None:
        """Removes a port; its connections stay open."""
        await ports.remove(name)

    return router
