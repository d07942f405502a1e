"""The source or destination of a move, as the command line names it: a folder, or the URL of a database."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from services.common import plugins
from services.common.errors import PreconditionFailed
from services.store.choice import Choice, by_url, with_configuration
from services.store.folder import DataFolder
from services.store.provider import Provider

_DEFAULT = "sqlite"


@dataclass(frozen=True, slots=True)
class Site:
    """A provider, and its place. Only one process can have it open: a move or a store."""

    choice: Choice
    folder: Path | None  # of a provider that keeps things in one, or is configuration in one

    def __str__(self) -> str:
        return self.choice.place(self.folder or Path())

    @asynccontextmanager
    async def source(self) -> AsyncIterator[Provider]:
        """The provider, open. Raises PreconditionFailed or InternalError: no store there, unreachable, or in use."""
        provider = self._provider()
        if self.folder and not any((self.folder / name).exists() for name in provider.files()):
            raise PreconditionFailed(f"there is no store in {self.folder}")
        async with self._opened(provider):
            yield provider

    @asynccontextmanager
    async def destination(self, beside: Site | None = None) -> AsyncIterator[Provider]:
        """The provider, open; created, if it does not exist. `beside`: the source, which is open, maybe in its folder.

        Raises PreconditionFailed where both have a file there.
        """
        provider = self._provider()
        held = beside.folder if beside else None
        if beside and held == self.folder and not set(provider.files()).isdisjoint(beside.files()):
            raise PreconditionFailed(f"{beside} cannot be copied into its own files")
        async with self._opened(provider, held):
            yield provider

    def files(self) -> tuple[str, ...]:
        """Names of what it keeps in its folder."""
        return self._provider().files()

    def _provider(self) -> Provider:
        provider = self.choice.make(self.folder or Path())
        if self.folder and not provider.files():
            raise PreconditionFailed(f"the store provider {self.choice.name} keeps nothing in {self.folder}")
        return provider

    @asynccontextmanager
    async def _opened(self, provider: Provider, held: Path | None = None) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            if self.folder and self.folder != held:
                stack.enter_context(DataFolder(self.folder).held())
            await provider.open(patient=False)
            stack.push_async_callback(provider.close)
            yield


def site(text: str, configuration: str = "", data: Path = Path(), *, older: bool = False) -> Site:
    """FOLDER, PROVIDER:FOLDER or a URL; the configuration may be apart, at a URL, or `sqlite:` in the folder.

    That is `data` where the messages are at a URL. `older`: one of the two may be older than the other. Raises
    InternalError where a URL is of no provider.
    """
    found = _site(text)
    if not configuration:
        return found
    choice = replace(with_configuration(found.choice, configuration, "the configuration's"), older=older)
    inside = found.folder or data.absolute()
    return Site(choice, found.folder if choice.configuration and choice.configuration.url else inside)


def _site(text: str) -> Site:
    if "://" in text:
        return Site(by_url(text, "it"), None)
    name, colon, folder = text.partition(":")
    if colon and name in plugins.names("store_providers"):
        return Site(Choice(name), Path(folder).absolute())
    return Site(Choice(_DEFAULT), Path(text).absolute())
