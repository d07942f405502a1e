"""Where did my message go: answers from the ledger. See README.md beside this file."""
