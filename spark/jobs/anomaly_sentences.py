"""Says in a sentence what is odd about a window of an edge."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F


def sentence(seconds: int, history: int) -> Column:
    """Of the columns of an anomaly: what was, what is usual, and how far that is away."""
    length = f"{seconds} s" if seconds != 60 else "minute"
    usual = F.format_string(
        f"usually about %s (median of the {history} windows before; %.1f times their spread away)",
        _amount("median"),
        F.abs("score"),
    )
    odd = F.concat(_who(), F.lit(" "), _what(length), F.lit("; "), usual, F.lit("."))
    return F.when(F.col("metric") == "began", F.concat(_who(), F.lit(" "), _began())).otherwise(odd)


def _who() -> Column:
    source, target = F.col("source"), F.col("target")
    exchange = F.when(target == "", "the default exchange").otherwise(F.concat(F.lit("exchange "), target))
    from_exchange = F.when(source == "", "The default exchange").otherwise(F.concat(F.lit("Exchange "), source))
    return (
        F.when(F.col("kind") == "publish", F.concat(F.lit("Application "), source, F.lit(" to "), exchange))
        .when(F.col("kind") == "route", F.concat(from_exchange, F.lit(" to queue "), target))
        .when(F.col("kind") == "consume", F.concat(F.lit("Queue "), source, F.lit(" to application "), target))
        .otherwise(F.concat(F.lit("Queue "), source))
    )


def _what(length: str) -> Column:
    return (
        F.when(
            F.col("metric") == "wait",
            F.format_string("kept 5 %% of its messages waiting for %s or longer", _amount("value")),
        )
        .when(F.col("metric") == "errors", F.format_string(f"had %s failed messages in a {length}", _amount("value")))
        .when(F.col("value") == 0, F.lit(f"was silent for a {length}"))
        .otherwise(F.format_string(f"carried %s messages in a {length}", _amount("value")))
    )


def _began() -> Column:
    return F.format_string("began with %s messages: it was not there before.", _amount("value"))


def _amount(name: str) -> Column:
    milliseconds = F.format_string("%,.1f ms", F.col(name) / 1000)
    return F.when(F.col("metric") == "wait", milliseconds).otherwise(F.format_string("%,.0f", F.col(name)))
