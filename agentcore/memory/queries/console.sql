-- name: create_console_session
-- Stores a session or a sign-in link of the console, and removes expired ones.
WITH expired AS (
    DELETE FROM console_sessions WHERE expires_at <= now())
INSERT INTO console_sessions (digest, is_link, sealed, expires_at)
VALUES (%(digest)s, %(is_link)s, %(sealed)s, now() + make_interval(secs => %(seconds)s));

-- name: console_session
-- Returns the encrypted token of a session.
SELECT sealed FROM console_sessions WHERE digest = %(digest)s AND NOT is_link AND expires_at > now();

-- name: redeem_console_link
-- Removes a link; returns its encrypted token. Of several callers one gets it.
DELETE FROM console_sessions WHERE digest = %(digest)s AND is_link AND expires_at > now() RETURNING sealed;

-- name: end_console_session
-- Removes a session.
DELETE FROM console_sessions WHERE digest = %(digest)s;
