"""Rows of PostgreSQL by what they hold, always of one agent, inside one transaction."""
