-- `lexical_hits` reads the postings of both in one pass.
DROP FUNCTION lexical_arm, lexical_sessions;
