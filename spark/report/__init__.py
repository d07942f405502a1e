"""The report: everything that analyses found, on one HTML page that needs nothing else."""
