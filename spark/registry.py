"""Finds analyses by name: the built-in ones, and those of other packages in the entry-point group hopline.analyses."""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import entry_points
from typing import TYPE_CHECKING

from spark.errors import AnalysisError

if TYPE_CHECKING:
    from spark.job import Job

GROUP = "hopline.analyses"

# A table beside the entry points: spark-submit takes the package as a zip, which has no metadata. Naming them loads
# nothing, so that the command line can list them without Spark.
BUILT_IN = {
    "audit": ("spark.jobs.audit:JOB", "What became of every confirmed message; what was lost, or came twice."),
    "latency": ("spark.jobs.latency:JOB", "How long each hop takes, and how long messages wait in queues."),
    "critical-path": ("spark.jobs.critical_path:JOB", "Where a message's time goes, and what a faster hop would save."),
    "partitions": ("spark.jobs.partitions:JOB", "Hot partitions, skew, and which partitions to move where."),
    "dependencies": (
        "spark.jobs.dependencies:JOB",
        "Which application sends to which through which queue, and the graph of services.",
    ),
    "fan-out": ("spark.jobs.fan_out:JOB", "What a publish becomes in queues, and which bindings make most of it."),
    "lag": ("spark.jobs.lag:JOB", "Queues that grow, how long messages wait, and consumers that are slow."),
    "redeliveries": ("spark.jobs.redeliveries:JOB", "Messages delivered again and again; which ones are poison."),
    "failovers": ("spark.jobs.failovers:JOB", "How long each partition was without an owner when it moved."),
    "anomalies": ("spark.jobs.anomalies:JOB", "What is unlike the minutes before it, in a sentence each."),
    "traces": (
        "spark.jobs.traces:JOB",
        "Which service calls or feeds which, by the spans of applications and of the broker.",
    ),
    "quality": ("spark.jobs.quality:JOB", "How far the record can be trusted: holes, orphans, clocks."),
}


def names() -> dict[str, str]:
    """Every analysis that there is: name and what it tells, in a line."""
    others = {point.name: f"From {point.value}." for point in entry_points(group=GROUP)}
    return {**others, **{name: summary for name, (_, summary) in BUILT_IN.items()}}


def job(name: str) -> Job:
    """The analysis of that name; raises AnalysisError where there is none."""
    path = BUILT_IN[name][0] if name in BUILT_IN else _elsewhere(name)
    module, _, attribute = path.partition(":")
    found: Job = getattr(import_module(module), attribute)
    return found


def _elsewhere(name: str) -> str:
    for point in entry_points(group=GROUP, name=name):
        return point.value
    raise AnalysisError(f"no analysis is called {name}; there are {', '.join(sorted(names()))}")
