"""Rows of PostgreSQL, of one agent in one transaction, and the vector indexes that serve them."""
