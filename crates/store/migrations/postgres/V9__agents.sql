-- Agents that a key may act as, as a JSON list; none: those of its user.
ALTER TABLE access_keys ADD COLUMN agents text COLLATE "C";
-- From where somebody came that was turned away.
ALTER TABLE audit ADD COLUMN address text COLLATE "C";
