"""Which provider the settings name: by HOPLINE_STORE_URL, or by HOPLINE_STORE_PROVIDER where that is empty."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from services.common import plugins
from services.common.config import Settings
from services.common.errors import InternalError
from services.store.provider import Provider

_BY_SCHEME = {"postgres": "postgres", "postgresql": "postgres", "nats": "jetstream"}


@dataclass(frozen=True, slots=True)
class Choice:
    """A provider by name, and the URL that it is given where it has one."""

    name: str
    url: str = ""

    def make(self, folder: Path) -> Provider:
        """Makes the provider. Raises InternalError where a package that it needs is not installed."""
        try:
            create = plugins.load("store_providers", self.name)
        except ModuleNotFoundError as missing:
            raise InternalError(
                f"the store provider {self.name} needs {missing.name}, which is not installed: "
                f"pip install 'hopline[{self.name}]'"
            ) from missing
        made: Provider = create(folder, self.url) if self.url else create(folder)
        return made


def choose(settings: Settings) -> Choice:
    """The provider that the settings name. Raises InternalError for an unknown URL, or if another one is named."""
    url = settings.store_url.get_secret_value().strip()
    if not url:
        return Choice(settings.store_provider)
    chosen = by_url(url, "HOPLINE_STORE_URL")
    if "store_provider" in settings.model_fields_set and settings.store_provider != chosen.name:
        raise InternalError(
            f"HOPLINE_STORE_PROVIDER={settings.store_provider} and HOPLINE_STORE_URL={url.partition('://')[0]}://… "
            "do not go together: set one of them"
        )
    return chosen


def by_url(url: str, named: str) -> Choice:
    """The provider for the URL's scheme; `named` is the setting's name, for people. Raises InternalError for none."""
    scheme, colon, _ = url.partition("://")
    name = _BY_SCHEME.get(scheme.lower()) if colon else None
    if name is None:
        # The URL itself is not shown: there may be a password in it.
        known = " or ".join(f"{each}://…" for each in sorted(_BY_SCHEME, reverse=True))
        raise InternalError(f"{named} is no URL of a store: {known} is wanted, or none for SQLite")
    return Choice(name, url)


def one_process(name: str) -> str:
    """The error text where several store processes are to share a provider for one process."""
    return (
        f"HOPLINE_STORE_PROCESSES: {name} keeps everything in one process: set it to 1, or give them a PostgreSQL "
        "database or NATS servers to share, HOPLINE_STORE_URL=postgresql://… or nats://… (deploy/stores.md)"
    )
