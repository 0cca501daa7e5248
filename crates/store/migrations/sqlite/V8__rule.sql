-- From here on contents are canonical text by the rule that the header of their transaction names; without one, by the first.
-- Rows are as they were: this version keeps out builds that know one rule only. The number is "LUKA", for `file`.
PRAGMA application_id = 1280658241;
