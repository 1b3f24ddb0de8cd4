-- Entries may record the ends of closed segments of the activity log, and grants that take the
-- place of wider ones. The tables are the same; a program that does not know such entries must not
-- take them for damage.
PRAGMA user_version = 3;
