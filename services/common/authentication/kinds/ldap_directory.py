"""A client of an LDAP directory, blocking: one connection for each question. It uses ldap3."""

from __future__ import annotations

import re
import ssl
import unicodedata
import warnings
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any

with warnings.catch_warnings():  # pyasn1 has renamed what ldap3 uses
    warnings.simplefilter("ignore")
    import ldap3
    from ldap3.core.exceptions import (
        LDAPException,
        LDAPInsufficientAccessRightsResult,
        LDAPInvalidCredentialsResult,
        LDAPNoSuchObjectResult,
    )
    from ldap3.utils.conv import escape_filter_chars
    from ldap3.utils.dn import escape_rdn

if TYPE_CHECKING:
    from services.common.authentication.kinds.ldap import LdapOptions

_TWO = 2  # entries of one name: a search need not find more
_NAMING = re.compile(r"[(+]([A-Za-z][A-Za-z0-9-]*)=\{user\}(?=[),+])")  # attributes that are a user's name


class Away(Exception):
    """The directory does not answer, or not as it should."""


@dataclass(frozen=True, slots=True)
class Found:
    """A user whose password fits."""

    name: str
    """The directory's spelling, where that can be read: it accepts LENA, and "lena ", for lena."""
    groups: frozenset[str]
    again: bool
    """Whether user and groups can be looked up again without the password."""


class Directory:
    """The directory that the options describe."""

    def __init__(self, options: LdapOptions) -> None:
        self._options = options
        self._naming = _NAMING.findall(f"({options.user_dn})") + _NAMING.findall(options.search_filter)
        self._tls = _Tls(ssl.create_default_context(cafile=options.authorities or None))

    def find(self, user: str, password: str) -> Found | None:
        """The user; None for an unknown one or a wrong password. Raises Away."""
        if "\0" in user:  # which no escape makes part of a name
            return None
        try:
            dn = self._dn_of(user)
            return self._signed_in(dn, user, password) if dn else None
        except LDAPInvalidCredentialsResult:
            return None
        except (LDAPException, OSError, ValueError) as error:
            raise Away(_told(error)) from error

    def _search_user(self, user: str) -> str:
        """The distinguished name; "" where no entry, or several, have the name."""
        options = self._options
        connection = self._searching()
        try:
            wanted = options.search_filter.replace("{user}", escape_filter_chars(user))
            connection.search(options.search_base, wanted, attributes=ldap3.NO_ATTRIBUTES, size_limit=_TWO)
            found = _entries(connection)
        finally:
            _leave(connection)
        return str(found[0]["dn"]) if len(found) == 1 else ""

    def _signed_in(self, dn: str, user: str, password: str) -> Found | None:
        connection = self._bound(dn, password)
        try:
            own = self._named_by(connection, dn)
            if not self._options.bind_dn:
                name, groups = self._name(connection, dn, user), self._groups(connection, dn, user)
                return Found(name, own | groups, again=not self._options.user_dn) if name else None
        finally:
            _leave(connection)
        searching = self._searching()
        try:
            again = self._is_there(searching, dn) and self._named_by(searching, dn) == own
            name = self._name(searching, dn, user)
            return Found(name, own | self._groups(searching, dn, user), again) if name else None
        finally:
            _leave(searching)

    def groups_now(self, name: str, former: frozenset[str]) -> frozenset[str] | None:
        """Present groups of a user with `again`, by its principal's name; None where it is gone. Raises Away.

        They are the former groups where they were found with the user's own bind, or by the name that it had sent.
        """
        options = self._options
        try:
            dn = name if options.name == "dn" else self._dn_of(name)
            searching = self._searching()
            try:
                if not dn or not self._is_there(searching, dn):
                    return None
                if not options.bind_dn or options.name == "dn":
                    return former
                return self._named_by(searching, dn) | self._groups(searching, dn, name)
            finally:
                _leave(searching)
        except (LDAPException, OSError, ValueError) as error:
            raise Away(_told(error)) from error

    def _dn_of(self, user: str) -> str:
        written = self._options.user_dn.replace("{user}", escape_rdn(user))
        return written or self._search_user(user)

    @staticmethod
    def _is_there(connection: ldap3.Connection, dn: str) -> bool:
        try:
            connection.search(dn, "(objectClass=*)", ldap3.BASE, attributes=ldap3.NO_ATTRIBUTES)
        except LDAPNoSuchObjectResult:
            return False
        return bool(_entries(connection))

    def _name(self, connection: ldap3.Connection, dn: str, user: str) -> str:
        """The name in the entry; the claimed one where the entry cannot be read; "" where the entry has another."""
        of_dn = self._options.name == "dn"
        with suppress(LDAPNoSuchObjectResult, LDAPInsufficientAccessRightsResult):
            wanted = self._naming or ldap3.NO_ATTRIBUTES
            connection.search(dn, "(objectClass=*)", ldap3.BASE, attributes=wanted)
            for entry in _entries(connection):
                if of_dn:
                    return str(entry["dn"])
                values = [value for each in self._naming for value in _values(entry, each)]
                alike = (value for value in values if _prepared(value) == _prepared(user))
                return user if user in values or not values else next(alike, "")
        return dn if of_dn else user

    def _named_by(self, connection: ldap3.Connection, dn: str) -> frozenset[str]:
        attribute = self._options.member_of
        if not attribute:
            return frozenset()
        connection.search(dn, "(objectClass=*)", ldap3.BASE, attributes=[attribute])
        return frozenset(value for entry in _entries(connection) for value in _values(entry, attribute))

    def _groups(self, connection: ldap3.Connection, dn: str, user: str) -> frozenset[str]:
        options = self._options
        if not options.group_base:
            return frozenset()
        wanted = options.group_filter.replace("{dn}", escape_filter_chars(dn))
        wanted = wanted.replace("{user}", escape_filter_chars(user))
        connection.search(options.group_base, wanted, attributes=[options.group_attribute])
        return frozenset(value for entry in _entries(connection) for value in _values(entry, options.group_attribute))

    def _searching(self) -> ldap3.Connection:
        options = self._options
        password = options.bind_password.get_secret_value()
        if options.bind_password_file:
            password = Path(options.bind_password_file).read_text().rstrip("\r\n")
        try:
            return self._bound(options.bind_dn, password)
        except LDAPInvalidCredentialsResult:
            raise Away("bind_dn is refused: bind_password is wrong") from None

    def _bound(self, dn: str, password: str) -> ldap3.Connection:
        options = self._options
        # A new one each time: it would remember for a while that an address did not answer.
        server = ldap3.Server(
            options.url.rstrip("/"), connect_timeout=options.timeout, get_info=ldap3.NONE, tls=self._tls
        )
        connection = ldap3.Connection(
            server,
            dn or None,
            password or None,
            authentication=ldap3.SIMPLE if dn else ldap3.ANONYMOUS,
            receive_timeout=ceil(options.timeout),  # whole seconds, for the system call
            auto_referrals=False,  # the server of a referral would get the password
            raise_exceptions=True,
            read_only=True,
        )
        try:
            connection.open()
            if options.start_tls:
                connection.start_tls()
            connection.bind()
        except BaseException:
            _leave(connection)
            raise
        return connection


class _Tls(ldap3.Tls):  # type: ignore[misc]  # the library has no types
    """Uses Python's own TLS rules, in place of ldap3's: OpenSSL compares host names."""

    def __init__(self, context: ssl.SSLContext) -> None:
        super().__init__(validate=ssl.CERT_REQUIRED)
        self._context = context

    def wrap_socket(self, connection: ldap3.Connection, do_handshake: bool = False) -> None:
        host = connection.server.host.strip("[]")
        connection.socket = self._context.wrap_socket(
            connection.socket, server_hostname=host, do_handshake_on_connect=do_handshake
        )


def _leave(connection: ldap3.Connection) -> None:
    with suppress(LDAPException, OSError):
        connection.unbind()
    if connection.socket:  # ldap3 leaves it open when it could not connect
        connection.socket.close()


def _entries(connection: ldap3.Connection) -> list[Mapping[str, Any]]:
    return [entry for entry in connection.response or () if entry.get("type") == "searchResEntry"]


def _prepared(name: str) -> str:
    """A name as directories compare it (RFC 4518)."""
    return " ".join(unicodedata.normalize("NFKC", name).casefold().split())


def _values(entry: Mapping[str, Any], attribute: str) -> list[str]:
    found = entry["attributes"].get(attribute, [])
    return [str(value) for value in (found if isinstance(found, list) else [found])]


def _told(error: Exception) -> str:
    """The error in words, without what was sent to the directory."""
    return f"{type(error).__name__}: {error}"
