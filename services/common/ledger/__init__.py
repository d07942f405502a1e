"""The record of every message: services note what happens, and send it to the bus. See README.md beside this file."""
