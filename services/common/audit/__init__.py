"""Who signed in, who was refused, who changed what: on record by itself, apart from the log."""
