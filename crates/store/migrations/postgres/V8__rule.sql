-- From here on contents are canonical text by the rule that the header of their transaction names; without one, by the first.
-- Rows are as they were: this version keeps out builds that know one rule only.
COMMENT ON COLUMN transactions.header IS 'JSON; its field rule is the version of canonical text, 1 where there is none';
