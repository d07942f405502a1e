"""Patterns as services.common.patterns has them, in SQL."""

from __future__ import annotations


def fits(column: str, parameter: str) -> str:
    """A condition: a column fits the pattern in a parameter.

    Whether the two are equal is asked first: files say which values they cannot have.
    """
    return f"{column} = ${parameter} or {column} glob {glob_of(parameter)}"


def glob_of(parameter: str) -> str:
    r"""The pattern in DuckDB's words, for which [ and \ are more than themselves."""
    return rf"replace(replace(${parameter}, '\', '\\'), '[', '[[]')"
