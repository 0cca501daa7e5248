-- From where somebody came that was turned away.
ALTER TABLE audit ADD COLUMN address TEXT;
