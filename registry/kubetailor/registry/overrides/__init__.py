"""Overrides: a chain for one execution, what it may do, and what it did."""
