"""The REST interface: routes below /api, one file for each thing that they are about."""
