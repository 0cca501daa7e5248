-- Agents that a key may act as, as a JSON list; none: those of its user.
ALTER TABLE access_keys ADD COLUMN agents TEXT;
CREATE TRIGGER access_keys_keep_agents BEFORE UPDATE OF agents ON access_keys
    BEGIN SELECT RAISE(ABORT, 'keys are never changed'); END;
