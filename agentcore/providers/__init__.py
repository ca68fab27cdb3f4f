"""Optional implementations, one file each. The tables that name them are with their protocols."""
