"""The source or destination of a move, as the command line names it: a folder, or the URL of a database."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from services.common import plugins
from services.common.errors import PreconditionFailed
from services.store.choice import Choice, by_url
from services.store.folder import DataFolder
from services.store.provider import Provider

_DEFAULT = "sqlite"


@dataclass(frozen=True, slots=True)
class Site:
    """A provider, and its place. Only one process can have it open: a move or a store."""

    choice: Choice
    folder: Path | None  # of a provider that keeps things in one

    def __str__(self) -> str:
        return _without_secrets(self.choice.url) if self.folder is None else f"{self.choice.name}:{self.folder}"

    @asynccontextmanager
    async def source(self) -> AsyncIterator[Provider]:
        """The provider, open. Raises PreconditionFailed or InternalError: no store there, unreachable, or in use."""
        provider = self._provider()
        if self.folder and not any((self.folder / name).exists() for name in provider.files()):
            raise PreconditionFailed(f"there is no store in {self.folder}")
        async with self._opened(provider):
            yield provider

    @asynccontextmanager
    async def destination(self) -> AsyncIterator[Provider]:
        """The provider, open; created, if it does not exist."""
        provider = self._provider()
        async with self._opened(provider):
            yield provider

    def _provider(self) -> Provider:
        provider = self.choice.make(self.folder or Path())
        if self.folder and not provider.files():
            raise PreconditionFailed(f"the store provider {self.choice.name} keeps nothing in {self.folder}")
        return provider

    @asynccontextmanager
    async def _opened(self, provider: Provider) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            if self.folder:
                stack.enter_context(DataFolder(self.folder).held())
            await provider.open(patient=False)
            stack.push_async_callback(provider.close)
            yield


def site(text: str) -> Site:
    """FOLDER, PROVIDER:FOLDER or a URL. Raises InternalError where the URL is of no provider."""
    if "://" in text:
        return Site(by_url(text, "it"), None)
    name, colon, folder = text.partition(":")
    if colon and name in plugins.names("store_providers"):
        return Site(Choice(name), Path(folder).absolute())
    return Site(Choice(_DEFAULT), Path(text).absolute())


def _without_secrets(url: str) -> str:
    """The URL without its password and options."""
    try:
        parts = urlsplit(url)
        user, _, hosts = parts.netloc.rpartition("@")
    except ValueError:
        return f"{url.partition('://')[0]}://…"
    name = f"{user.partition(':')[0]}@" if user else ""
    return f"{parts.scheme}://{name}{hosts}{parts.path}"
