"""Clients: a running service from Python, and load to measure one."""
