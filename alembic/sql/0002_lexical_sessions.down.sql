DROP FUNCTION lexical_sessions;
