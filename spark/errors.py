"""What can keep an analysis from running; each says in one line what to do."""

from __future__ import annotations


class AnalysisError(Exception):
    """An analysis cannot run, for a reason that its user can mend."""


class JavaMissing(AnalysisError):
    """No Java, or one that is too old for Spark."""


class MasterMissing(AnalysisError):
    """No Spark master where one was to be joined."""


class NothingToRead(AnalysisError):
    """No readable input where it was looked for."""
