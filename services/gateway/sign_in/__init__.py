"""Who clients are: what they claim, judged by the users on record."""
