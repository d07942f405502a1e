"""The HTTP server inside of mgmt: who may be connected, and for how long without asking."""
