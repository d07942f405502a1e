"""Authentication providers: for administrators. What is secret is masked on the way out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter
from fastapi import Path as InPath
from pydantic import BaseModel, ConfigDict, Field

from services.common.authentication.described import Described
from services.mgmt.providers import Providers
from services.mgmt.rest.basic import Basic
from services.mgmt.rest.failures import documented
from services.mgmt.rest.own import own_router

_Name = Annotated[str, InPath(min_length=1, max_length=255, description="of the provider")]


class ProviderForm(BaseModel):
    """A provider as it is told: its kind, and what that kind wants to know."""

    model_config = ConfigDict(extra="forbid")

    type: Annotated[str, Field(min_length=1, max_length=64, description="a plug-in of authentication_providers")]
    options: Annotated[Mapping[str, Any], Field(description="one that is masked stays as it is")] = {}


class NamedProvider(ProviderForm):
    """A provider."""

    name: str
    of_settings: Annotated[bool, Field(description="of HOPLINE_AUTHENTICATION_PROVIDERS_FILE: it cannot be changed")]


def provider_routes(door: Basic, providers: Providers) -> APIRouter:
    """Below /authentication-providers."""
    router = own_router(door, "authentication", "/authentication-providers")

    @router.get("", responses=documented(503), summary="Authentication providers")
    async def list_providers() -> list[NamedProvider]:
        """Those of the settings, then those on record."""
        of_records = {name: each.masked() for name, each in (await providers.of_records()).items()}
        return [*_listed(providers.of_file, of_settings=True), *_listed(of_records, of_settings=False)]

    @router.put("/{name:names}", status_code=204, responses=documented(503), summary="Add a provider")
    async def put_provider(name: _Name, told: ProviderForm) -> None:
        """Adds a provider, or replaces the one of that name: connections that it let in are closed."""
        await providers.put(name, Described(type=told.type, options=told.options))

    @router.delete("/{name:names}", status_code=204, responses=documented(404, 503), summary="Remove a provider")
    async def remove_provider(name: _Name) -> None:
        """Removes a provider: connections that it let in are closed."""
        await providers.remove(name)

    return router


def _listed(found: Mapping[str, Described], *, of_settings: bool) -> list[NamedProvider]:
    return [
        NamedProvider(name=name, type=each.type, options=each.options, of_settings=of_settings)
        for name, each in sorted(found.items())
    ]
