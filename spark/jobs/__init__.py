"""The analyses: each module has one, as `JOB`."""
