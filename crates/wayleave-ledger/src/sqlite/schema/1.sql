-- The chain. `body` is canonical JSON; `hash` seals every other column.
CREATE TABLE entries (
    seq       INTEGER PRIMARY KEY CHECK (seq > 0),
    at        INTEGER NOT NULL,
    kind      TEXT    NOT NULL,
    body      TEXT    NOT NULL,
    prev_hash BLOB    NOT NULL CHECK (length(prev_hash) = 32),
    hash      BLOB    NOT NULL CHECK (length(hash) = 32)
) STRICT;

-- Also against `INSERT OR REPLACE`, which removes rows without asking the trigger on DELETE.
CREATE TRIGGER entries_follow_in_order BEFORE INSERT ON entries
WHEN NEW.seq <> (SELECT coalesce(max(seq), 0) + 1 FROM entries)
BEGIN
    SELECT RAISE(ABORT, 'entries follow in order');
END;

CREATE TRIGGER entries_never_change BEFORE UPDATE ON entries
BEGIN
    SELECT RAISE(ABORT, 'entries never change');
END;

CREATE TRIGGER entries_never_go BEFORE DELETE ON entries
BEGIN
    SELECT RAISE(ABORT, 'entries never go');
END;

PRAGMA application_id = 1464618055; -- 'WLLG'
PRAGMA user_version = 1;
