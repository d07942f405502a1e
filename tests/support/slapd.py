"""A real LDAP server of this machine: slapd, with people and groups, over plain LDAP, StartTLS and LDAPS."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.certificates import Authority
from tests.support.ports import free_port

SLAPD = shutil.which("slapd") or "/usr/sbin/slapd"
SUFFIX = "dc=example,dc=org"
ADMIN = f"cn=admin,{SUFFIX}"
ADMIN_PASSWORD = "the directory's own"

_CONFIG = """
include /etc/ldap/schema/core.schema
include /etc/ldap/schema/cosine.schema
include /etc/ldap/schema/inetorgperson.schema
modulepath /usr/lib/ldap
moduleload back_mdb
pidfile {folder}/slapd.pid
TLSCACertificateFile {authorities}
TLSCertificateFile {certificate}
TLSCertificateKeyFile {certificate}
database mdb
suffix "{suffix}"
rootdn "{admin}"
rootpw "{password}"
directory {folder}/db
access to attrs=userPassword by self read by anonymous auth by * none
access to * by * read
"""

_ENTRIES = f"""
dn: {SUFFIX}
objectClass: dcObject
objectClass: organization
o: Example
dc: example

dn: ou=people,{SUFFIX}
objectClass: organizationalUnit
ou: people

dn: ou=groups,{SUFFIX}
objectClass: organizationalUnit
ou: groups

dn: uid=alice,ou=people,{SUFFIX}
objectClass: inetOrgPerson
uid: alice
cn: Alice
sn: A
employeeType: clerk
userPassword: alice's

dn: uid=bob,ou=people,{SUFFIX}
objectClass: inetOrgPerson
uid: bob
cn: Bob
sn: B
userPassword: bob's

dn: uid=o\\2Cdd,ou=people,{SUFFIX}
objectClass: inetOrgPerson
uid: o,dd
cn: *
sn: O
userPassword: odd's

dn: uid=twin,ou=people,{SUFFIX}
objectClass: inetOrgPerson
uid: twin
cn: Twin
sn: T
userPassword: twin's

dn: cn=other twin,ou=people,{SUFFIX}
objectClass: inetOrgPerson
uid: twin
cn: other twin
sn: T
userPassword: twin's

dn: cn=operators,ou=groups,{SUFFIX}
objectClass: groupOfNames
cn: operators
member: uid=alice,ou=people,{SUFFIX}

dn: cn=staff,ou=groups,{SUFFIX}
objectClass: groupOfNames
cn: staff
member: uid=alice,ou=people,{SUFFIX}
member: uid=bob,ou=people,{SUFFIX}
"""


class Slapd:
    """One that runs."""

    def __init__(self, folder: Path, authority: Authority) -> None:
        self.folder = folder
        self.authorities = authority.path
        self.port, self.tls_port = free_port(), free_port()
        self._certificate = authority.sign("ldap", ["localhost", "127.0.0.1"])
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"ldap://localhost:{self.port}"

    @property
    def tls_url(self) -> str:
        return f"ldaps://localhost:{self.tls_port}"

    def make(self) -> None:
        """With its entries."""
        (self.folder / "db").mkdir()
        config = self.folder / "slapd.conf"
        config.write_text(
            _CONFIG.format(
                folder=self.folder, authorities=self.authorities, certificate=self._certificate,
                suffix=SUFFIX, admin=ADMIN, password=ADMIN_PASSWORD,
            )
        )  # fmt: skip
        command = [SLAPD, "-Tadd", "-f", str(config)]
        subprocess.run(command, input=_ENTRIES, text=True, check=True, capture_output=True)

    def start(self) -> None:
        """Returns when it answers."""
        urls = f"ldap://127.0.0.1:{self.port} ldaps://127.0.0.1:{self.tls_port}"
        command = [SLAPD, "-h", urls, "-f", str(self.folder / "slapd.conf"), "-d", "0"]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log)
        for _ in range(200):
            try:
                socket.create_connection(("127.0.0.1", self.tls_port), 1).close()
            except OSError:
                time.sleep(0.05)
            else:
                return
        raise AssertionError((self.folder / "log").read_text())

    def stop(self) -> None:
        """It does not answer any more."""
        assert self._process
        self._process.terminate()
        self._process.wait(20)


@contextmanager
def running_slapd(folder: Path, authority: Authority) -> Iterator[Slapd]:
    """One for tests that do not change it."""
    slapd = Slapd(folder, authority)
    slapd.make()
    slapd.start()
    try:
        yield slapd
    finally:
        slapd.stop()
