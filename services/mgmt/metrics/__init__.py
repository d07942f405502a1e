"""What the whole stack counts, asked of every process, for scrapers."""
