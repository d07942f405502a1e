"""Files the record of every message. See README.md beside this file."""
