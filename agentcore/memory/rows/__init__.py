"""Rows of PostgreSQL by what they hold, of one agent in one transaction; which vector indexes serve them."""
