"""A standalone Spark cluster of real processes on this machine, whose workers may be killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.request
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyspark

from tests.support.ports import free_port
from tests.support.stack import HOST, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

_START_SECONDS = 60.0
_SPARK_CLASS = Path(pyspark.__file__).parent / "bin" / "spark-class"
_MASTER = "org.apache.spark.deploy.master.Master"
_WORKER = "org.apache.spark.deploy.worker.Worker"


# Compiling less takes less time than a short job gains by it. But then Java has a fifth of the usual room for what it
# has compiled, and no longer compiles when one session of all tests has filled it.
QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=240m"
# What an executor had that is gone is asked for once more, not for a quarter of a minute.
_DEFAULTS = f"""
spark.executor.extraJavaOptions {QUICK}
spark.shuffle.io.maxRetries 1
spark.shuffle.io.retryWait 500ms
"""


class SparkCluster:
    """A master and its workers, each of one core."""

    def __init__(self, folder: Path, port: int, web_port: int) -> None:
        self.master = f"spark://{HOST}:{port}"
        self._web = f"http://{HOST}:{web_port}/json/"
        self._folder = folder
        self._workers: list[subprocess.Popen[bytes]] = []

    def state(self) -> dict[str, Any]:
        """What the master says of itself; nothing while it does not answer, or shows a page that it has sooner."""
        with suppress(OSError, ValueError), urllib.request.urlopen(self._web, timeout=2) as reply:
            return json.load(reply)
        return {}

    def add_worker(self, number: int) -> subprocess.Popen[bytes]:
        arguments = ["--host", HOST, "--webui-port", "0", "--cores", "1", "--memory", "1g"]
        process = start(self._folder, _WORKER, *arguments, "--work-dir", str(self._work(number)), self.master)
        self._workers.append(process)
        return process

    def tasks(self, number: int) -> int:
        """How many tasks a worker's executors have begun."""
        logs = self._work(number).glob("app-*/*/stderr")
        return sum(log.read_text(errors="replace").count("Running task") for log in logs)

    def kill_worker(self, number: int) -> None:
        """With all that it started: as when its machine is gone."""
        kill(self._workers[number])

    def _work(self, number: int) -> Path:
        return self._folder / f"worker-{number}"


def environment(folder: Path) -> dict[str, str]:
    """What processes of a cluster on this machine need; `folder` gets their settings."""
    (folder / "spark-defaults.conf").write_text(_DEFAULTS)
    return os.environ | {
        "SPARK_CONF_DIR": str(folder),
        "SPARK_DAEMON_JAVA_OPTS": QUICK,
        "SPARK_SUBMIT_OPTS": QUICK,
        "SPARK_LOCAL_IP": HOST,
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_EXECUTOR_MEMORY": "512m",
        "PYSPARK_PYTHON": sys.executable,
    }


def start(folder: Path, *arguments: str) -> subprocess.Popen[bytes]:
    with (folder / "cluster.log").open("ab") as log:
        # A group of its own, to be killed with all that it starts.
        return subprocess.Popen(
            [str(_SPARK_CLASS), *arguments], stdout=log, stderr=log, env=environment(folder), start_new_session=True
        )


def kill(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@contextmanager
def running_spark_cluster(folder: Path, workers: int = 2) -> Iterator[SparkCluster]:
    """A master and so many workers that have found it; nothing of them is left afterwards."""
    port, web_port = free_port(), free_port()
    with ExitStack() as started:
        master = start(folder, _MASTER, "--host", HOST, "--port", str(port), "--webui-port", str(web_port))
        started.callback(kill, master)
        cluster = SparkCluster(folder, port, web_port)
        for number in range(workers):
            started.callback(kill, cluster.add_worker(number))
        wait_until(lambda: cluster.state().get("aliveworkers") == workers, _START_SECONDS, "workers at their master")
        yield cluster
