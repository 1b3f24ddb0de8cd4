-- Entries may record grants and tokens. The tables are the same; a program that does not know
-- such entries must not take them for damage.
PRAGMA user_version = 2;
