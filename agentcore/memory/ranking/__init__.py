"""Parts of a ranking: candidates, calibration, duplicates, contradictions. Pure; see also `retrieval`."""
