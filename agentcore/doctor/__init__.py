"""The doctor: examines each part, reports the result and a fix. It changes no data."""
