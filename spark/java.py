"""Whether there is a Java that Spark can run on."""

from __future__ import annotations

import os
import re
import shutil
import subprocess

from spark.errors import JavaMissing

OLDEST = 17

_VERSION = re.compile(r'version "(?:1\.)?(\d+)')
_ADVICE = "on Debian: apt install openjdk-17-jre-headless; or set JAVA_HOME"


def java_version() -> int:
    """The major version of the Java that Spark would start: that of JAVA_HOME, else the first on PATH.

    Raises JavaMissing where there is none that answers.
    """
    home = os.environ.get("JAVA_HOME")
    java = f"{home}/bin/java" if home else shutil.which("java")
    if java is None:
        raise JavaMissing(f"Spark needs Java {OLDEST} or newer, and none is found ({_ADVICE})")
    try:
        # S603: the user's own Java, as Spark itself would start it
        said = subprocess.run([java, "-version"], capture_output=True, text=True, check=False, timeout=30)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired) as error:
        raise JavaMissing(f"Spark needs Java {OLDEST} or newer, and {java} does not run: {error}") from None
    found = _VERSION.search(said.stderr + said.stdout)
    if found is None:
        raise JavaMissing(f"Spark needs Java {OLDEST} or newer, and {java} does not say what it is ({_ADVICE})")
    return int(found[1])


def require_java() -> None:
    """Raises JavaMissing unless there is a Java that Spark can run on."""
    version = java_version()
    if version < OLDEST:
        raise JavaMissing(f"Spark needs Java {OLDEST} or newer, and this is {version} ({_ADVICE})")
