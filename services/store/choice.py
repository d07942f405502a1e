"""Which provider the settings name: by HOPLINE_STORE_URL, or by HOPLINE_STORE_PROVIDER where that is empty.

HOPLINE_STORE_CONFIGURATION_URL may name another one for the records.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from services.common import plugins
from services.common.config import Settings
from services.common.errors import InternalError
from services.store.folder import DATABASE
from services.store.provider import Elsewhere, Parted, Provider
from services.store.providers.apart import Apart, ApartElsewhere
from services.store.providers.apart_halves import Join
from services.store.same_place import same_place
from services.store.several_hosts import split

_SQLITE = "sqlite"
_FORGETS = "memory"
CONFIGURATION = "configuration"
"""The folder of it in the data folder."""
_BY_SCHEME = {"postgres": "postgres", "postgresql": "postgres", "nats": "jetstream"}


@dataclass(frozen=True, slots=True)
class Choice:
    """A provider by name, the URL that it is given where it has one, and that of the configuration if it is apart.

    `older`: one of the two may be older than the other.
    """

    name: str
    url: str = ""
    configuration: Choice | None = None
    older: bool = False

    @property
    def shown(self) -> str:
        """The names of the providers."""
        return self.name if self.configuration is None else f"{self.configuration.name}+{self.name}"

    def make(self, folder: Path) -> Provider:
        """Makes the provider. Raises InternalError where a package that it needs is not installed."""
        made = self._made(folder)
        if self.configuration is None:
            return made
        inner = folder / CONFIGURATION
        apart = self.configuration.make(inner)
        kind = ApartElsewhere if isinstance(made, Elsewhere) or isinstance(apart, Elsewhere) else Apart
        places = replace(self, configuration=None).place(folder), self.configuration.place(inner)
        return kind(made, apart, Join(*places, forgets=self.name == _FORGETS, older=self.older), inner)

    def _made(self, folder: Path) -> Provider:
        try:
            create = plugins.load("store_providers", self.name)
        except ModuleNotFoundError as missing:
            raise InternalError(
                f"the store provider {self.name} needs {missing.name}, which is not installed: "
                f"pip install 'hopline[{self.name}]'"
            ) from missing
        made: Provider = create(folder, self.url) if self.url else create(folder)
        return made

    def place(self, folder: Path) -> str:
        """Where it is, without secrets: for people."""
        place = without_secrets(self.url) if self.url else f"{self.name}:{folder}"
        if self.configuration is None:
            return place
        return f"{place}, configuration in {self.configuration.place(folder / CONFIGURATION)}"


def choose(settings: Settings) -> Choice:
    """The provider that the settings name. Raises InternalError for an unknown URL, or if another one is named."""
    chosen = _for_messages(settings)
    url = settings.store_configuration_url.get_secret_value().strip()
    return with_configuration(chosen, url, "HOPLINE_STORE_CONFIGURATION_URL") if url else chosen


def with_configuration(messages: Choice, url: str, named: str) -> Choice:
    """The configuration apart, at the URL; `named` as for `by_url`. Raises InternalError for one that is none."""
    chosen = Choice(_SQLITE) if url.lower() == f"{_SQLITE}:" else by_url(url, named, also=f"{_SQLITE}:")
    if chosen.url and same_place(chosen.url, messages.url):
        raise InternalError(f"{named} is where the messages are: leave it out, or name another place")
    return replace(messages, configuration=chosen)


def _for_messages(settings: Settings) -> Choice:
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


def by_url(url: str, named: str, also: str = "") -> Choice:
    """The provider for the URL's scheme; `named` is the setting's name, for people. Raises InternalError for none.

    `also`: what may stand in its place.
    """
    scheme, colon, _ = url.partition("://")
    name = _BY_SCHEME.get(scheme.lower()) if colon else None
    if name is None:
        # The URL itself is not shown: there may be a password in it.
        known = " or ".join(f"{each}://…" for each in sorted(_BY_SCHEME, reverse=True))
        rest = f"or {also} for a file in the data folder" if also else "or none for SQLite"
        raise InternalError(f"{named} is no URL of a store: {known} is wanted, {rest}")
    return Choice(name, url)


def without_secrets(url: str) -> str:
    """The URL without its password and options."""
    try:
        parts = split(url)
        user, _, hosts = parts.netloc.rpartition("@")
    except ValueError:
        return f"{url.partition('://')[0]}://…"
    name = f"{user.partition(':')[0]}@" if user else ""
    return f"{parts.scheme}://{name}{hosts}{parts.path}"


def for_one_process(provider: Provider) -> bool:
    """Whether something of it is in the data folder, or nowhere."""
    return not isinstance(provider, Elsewhere) or (isinstance(provider, Apart) and provider.for_one_process)


async def insist_on_no_half(provider: Provider, folder: Path) -> None:
    """Raises InternalError where a store would begin, empty, in a folder that has the configuration of another."""
    half = folder / CONFIGURATION
    if isinstance(provider, Parted) or not (half / DATABASE).exists():
        return
    if (folder / DATABASE).exists() and (await provider.given()).incarnation:
        return
    raise InternalError(
        f"{half} has the configuration of a store whose messages are elsewhere: set "
        "HOPLINE_STORE_CONFIGURATION_URL=sqlite: and HOPLINE_STORE_URL as before, or move that folder away"
    )


def one_process(name: str) -> str:
    """The error text where several store processes are to share a provider for one process."""
    return (
        f"HOPLINE_STORE_PROCESSES: {name} keeps everything in one process: set it to 1, or give them a PostgreSQL "
        "database or NATS servers to share, HOPLINE_STORE_URL=postgresql://… or nats://… (deploy/stores.md)"
    )
