-- The table of Django's cache, as `createcachetable` makes it.

CREATE TABLE annotation_cache (
    cache_key varchar(255) PRIMARY KEY,
    value text NOT NULL,
    expires timestamptz NOT NULL
);
CREATE INDEX annotation_cache_expires ON annotation_cache (expires);
