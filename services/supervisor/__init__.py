"""Runs the whole stack on one machine as child processes: starts them, restarts what dies, stops them in order."""
