-- Entries may be signed by an owner, and may record owners. An entry without a signature is sealed
-- as before; one with a signature has it under its hash.
ALTER TABLE entries ADD COLUMN signature TEXT;
PRAGMA user_version = 4;
