"""AuthenticationProvider and User: what judges sign-ins, and the users on record."""

from __future__ import annotations

from typing import Any

from services.common import plugins
from services.mgmt.model.attribute import attribute, derived
from services.mgmt.model.configured_object import ConfiguredObject


def _providers() -> tuple[str, ...]:
    return plugins.names("authentication_providers")


def _credentials() -> tuple[str, ...]:
    return plugins.names("credential_kinds")


class AuthenticationProvider(ConfiguredObject):
    """One provider. What is secret of its options is masked."""

    parent_kind = "Broker"
    types = _providers()

    type: str = attribute("of those that are installed", mandatory=True, immutable=True, valid=_providers)
    options: dict[str, Any] = attribute("what its type wants to know; one that is masked stays as it is", {})
    of_settings: bool = derived("whether it changes with the settings only")


class User(ConfiguredObject):
    """A user on record, below the provider `internal`."""

    parent_kind = "AuthenticationProvider"
    types = ("managed",)

    password: str = attribute("in clear, or as `credentialKind` makes it where `hashed`", mandatory=True, secure=True)
    tags: list[str] = attribute("what the user may do beyond messaging", [])
    loopback_only: bool = attribute("whether the user may sign in from this machine only", False)
    credential_kind: str = attribute("how a password that is given is kept", "argon2", valid=_credentials)
    hashed: bool = attribute("whether what is given as password is a hash of that kind already", False)
