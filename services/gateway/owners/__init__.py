"""Owners of queues: followed as they change, asked, and told what clients hold."""
