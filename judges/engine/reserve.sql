-- Reserve money and calls. Return the limit that refuses this, '' if they are reserved, and the calls that the
-- holder has reserved then. Lock order: the collection's advisory lock (taken by an earlier statement), the holder's
-- reservation.
WITH decision AS MATERIALIZED (
    SELECT c.id, CASE
        WHEN h.booked THEN ''
        WHEN t.calls + h.calls + :calls > c.max_calls THEN 'max-calls'
        WHEN :usd <= 0 THEN ''
        WHEN t.usd + h.usd + :usd > c.budget + 1e-12 THEN 'budget'
        WHEN a.spent + a.held + :usd > k.budget + 1e-12 THEN 'collection'
        WHEN a.today + a.held + :usd > k.daily_budget + 1e-12 THEN 'day'
        ELSE '' END AS cap
    FROM judges_campaign c JOIN corpus_collection k ON k.id = c.collection_id,
        LATERAL (SELECT COALESCE(sum(value) FILTER (WHERE key = ANY(:costs)), 0) AS usd,
                     COALESCE(sum(value) FILTER (WHERE key = ANY(:counted)), 0) AS calls
                 FROM judges_tally WHERE campaign_id = c.id) t,
        LATERAL (SELECT COALESCE(sum(usd), 0) AS usd, COALESCE(sum(calls), 0) AS calls,
                     bool_or(holder = :holder AND calls = :after) AS booked
                 FROM judges_reservation WHERE campaign_id = c.id) h,
        LATERAL collection_spending(k.id) a
    WHERE c.id = :campaign
),
held AS (
    -- `after`: the calls reserved by an earlier run, if the connection was lost before the answer to its commit.
    -- Only the holder's writer changes its row, one statement after the other: a row with this number is from that run.
    INSERT INTO judges_reservation AS v (campaign_id, holder, usd, calls, until)
    SELECT id, :holder, :usd, :calls, now() + make_interval(secs => :lease) FROM decision WHERE cap = ''
    ON CONFLICT (campaign_id, holder) DO UPDATE
    SET usd = v.usd + EXCLUDED.usd, calls = v.calls + EXCLUDED.calls, until = EXCLUDED.until
    WHERE v.calls IS DISTINCT FROM :after
    RETURNING v.calls
)
SELECT cap, (SELECT calls FROM held) FROM decision;
