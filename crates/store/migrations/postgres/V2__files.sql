-- Files are listed on every indexing pass; few objects are files.
CREATE INDEX things_files ON things (tenant, project, key) WHERE type = 'FILE';
