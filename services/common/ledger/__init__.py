"""The record of every message: what happens is noted here and told over the bus. See README.md beside this file."""
