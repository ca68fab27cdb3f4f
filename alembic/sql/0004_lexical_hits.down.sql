DROP FUNCTION lexical_hits;
