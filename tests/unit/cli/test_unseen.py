"""Passwords on command lines are not there for long."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import sys
from services.cli.unseen import overwrite_passwords

overwrite_passwords(sys.argv[1:])
print(open("/proc/self/cmdline", "rb").read().split(b"\\0")[3:-1], sys.argv[1:])
"""


@pytest.mark.parametrize(
    ("arguments", "seen"),
    [
        (["users", "add", "bob", "--password", "sekret"], ["users", "add", "bob", "--password", "******"]),
        (["--password=sekret=1", "--tag", "x"], ["--password=********", "--tag", "x"]),
        (["--password", "ö", "--password-file", "f"], ["--password", "**", "--password-file", "f"]),
        (["--password"], ["--password"]),
        (["copy", "data", "postgresql://me:s:k@t@db/x"], ["copy", "data", "postgresql://me:*****@db/x"]),
        (["--from=http://:pw@b:1/"], ["--from=http://:**@b:1/"]),
        (["http://me@b:15672/x:y@z"], ["http://me@b:15672/x:y@z"]),
        (["postgresql://me@corp:pw@db/x"], ["postgresql://me@corp:**@db/x"]),
        (["postgresql://db/x?user=me&password=pw&a=b"], ["postgresql://db/x?user=me&password=**&a=b"]),
        (["queues", "list"], ["queues", "list"]),
    ],
)
def test_it_is_overwritten(arguments: list[str], seen: list[str]) -> None:
    """In what others see of the process; the command has it all the same."""
    said = subprocess.run([sys.executable, "-c", PROGRAM, *arguments], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == f"{[each.encode() for each in seen]} {arguments}"


def test_commands_do_it() -> None:
    """Before anything else, so also where the command fails."""
    program = """
import sys
from contextlib import suppress
from services.__main__ import app

with suppress(SystemExit):
    app()
print(open("/proc/self/cmdline", "rb").read())
"""
    arguments = ["users", "add", "--password", "sekret", "--no-such-option"]
    said = subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=True)
    assert "sekret" not in said.stdout
    assert "--password" in said.stdout
