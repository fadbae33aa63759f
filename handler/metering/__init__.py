"""Counting calls for their callers: prices, quotas, credit, and the month they add up to."""
