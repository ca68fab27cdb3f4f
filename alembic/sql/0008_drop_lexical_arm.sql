-- Replaced by `lexical_hits`, which reads the postings once for both.
DROP FUNCTION lexical_arm, lexical_sessions;
