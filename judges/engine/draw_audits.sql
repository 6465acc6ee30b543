-- Draw audits, `wanted` of each stratum: the pairs with the smallest numbers. An earlier audit's item is used again.
-- Lock order: the campaign (locked before); items, audits, tallies.
WITH targets AS (SELECT key AS cell, value::int AS n FROM json_each_text(:wanted::json)),
ranked AS MATERIALIZED (
    SELECT f.*, row_number() OVER (PARTITION BY f.cell ORDER BY f.number, f.pair_id) AS rank,
           count(*) OVER (PARTITION BY f.cell) AS size
    FROM audit_frame(:campaign) f
),
more AS MATERIALIZED (
    SELECT r.*, i.id AS item, i.state AS item_state, t.n::float8 / r.size AS share
    FROM ranked r JOIN targets t ON t.cell = r.cell AND r.rank <= t.n
    LEFT JOIN LATERAL (
        SELECT id, state FROM corpus_item WHERE pair_id = r.pair_id AND reason = 'audit' AND state <> 'withdrawn'
        ORDER BY seq DESC LIMIT 1) i ON true
    WHERE NOT EXISTS (SELECT FROM judges_audit a WHERE a.campaign_id = :campaign AND a.pair_id = r.pair_id)
),
opened AS (
    INSERT INTO corpus_item
        (collection_id, pair_id, campaign, reason, priority, overlap, seq, state, taken, done)
    SELECT collection, pair, campaign, reason, priority, overlap, next_seq(pair, reason), 'open', 0, 0
    FROM (
        SELECT p.collection_id AS collection, p.id AS pair, :campaign::bigint AS campaign, 'audit' AS reason,
               queue_priority(c.order, c.seed, p.id, p.query_id, p.uncertainty) AS priority, 2 AS overlap
        FROM more m JOIN corpus_pair p ON p.id = m.pair_id JOIN corpus_collection c ON c.id = p.collection_id
        WHERE m.item IS NULL
    ) new_items ORDER BY pair
    RETURNING id, pair_id
),
audited AS (
    INSERT INTO judges_audit (campaign_id, pair_id, item_id, stratum, probability, label)
    SELECT :campaign, m.pair_id, COALESCE(m.item, o.id), m.stratum, m.share, m.label
    FROM more m LEFT JOIN opened o ON o.pair_id = m.pair_id ORDER BY m.pair_id
    RETURNING pair_id
),
sums AS (
    SELECT :campaign::bigint AS campaign, :shard::int AS shard, key, sum(n) AS value FROM (
        SELECT 'escalated:audit', 1 FROM audited
        UNION ALL SELECT 'audited', 1 FROM more WHERE item_state = 'settled') AS k(key, n) GROUP BY key ORDER BY key
),
tallied AS (
    INSERT INTO judges_tally AS t (campaign_id, shard, key, value)
    SELECT campaign, shard, key, value FROM sums
    ON CONFLICT (campaign_id, shard, key) DO UPDATE SET value = t.value + EXCLUDED.value
)
SELECT count(*) FROM audited;
