-- Count stored calls in counters, ledger and budgets: of the `rows` that were sent, those that were `stored` now, so
-- that none counts twice. Every updated row belongs to the writer's shard or to its process, so that processes which
-- commit at the same time do not wait for each other (docs/adr/0025). Lock order: tallies, ledger, reservations, the
-- collection's tally, each INSERT in the order of its keys, since two writers that update the same counters in
-- different orders would deadlock.
WITH stored AS MATERIALIZED (
    SELECT r.campaign, r.judge, r.role, CASE WHEN r.pair IS NULL THEN 0 ELSE r.round END AS round,
        r.outcome, r.cached, r.cost,
        CASE WHEN r.cost IS NULL THEN r.bound ELSE 0 END AS assumed, r.tokens_in, r.tokens_cached,
        coalesce(r.tokens_written, 0) AS tokens_written, r.tokens_out, r.tokens_reasoning,
        coalesce(r.answered_by, '') AS answered_by, r.holder, r.usd, r.calls
    FROM json_to_recordset(:rows::json) AS r(
        id bigint, campaign bigint, pair bigint, judge bigint, role text, round smallint, outcome text, cached bool,
        cost float8, bound float8, tokens_in int, tokens_cached int, tokens_written int,
        tokens_out int, tokens_reasoning int,
        answered_by text, holder text, usd float8, calls int)
    WHERE r.id = ANY(:stored::bigint[])
),
sums AS (
    SELECT campaign, key, sum(value) AS value
    FROM stored CROSS JOIN LATERAL (VALUES
        ('calls', (NOT cached)::int::float8),
        ('calls_cached', cached::int::float8),
        ('calls_failed', (outcome = 'error')::int::float8),
        ('calls_without_price', (cost IS NULL)::int::float8),
        ('cost', coalesce(cost, 0)),
        ('calls_assumed', (assumed > 0)::int::float8), ('cost_assumed', assumed),
        ('tokens_in', tokens_in), ('tokens_cached', tokens_cached), ('tokens_written', tokens_written),
        ('tokens_out', tokens_out), ('tokens_reasoning', tokens_reasoning),
        (left('answered:' || judge || ':' || answered_by, 100), (answered_by <> '')::int)) AS k(key, value)
    WHERE value <> 0 GROUP BY campaign, key ORDER BY campaign, key
),
tallied AS (
    INSERT INTO judges_tally AS t (campaign_id, shard, key, value)
    SELECT campaign, :shard::int, key, value FROM sums
    ON CONFLICT (campaign_id, shard, key) DO UPDATE SET value = t.value + EXCLUDED.value
),
entered AS (
    INSERT INTO judges_ledger AS l (campaign_id, shard, day, judge_id, role, round, outcome, calls, calls_cached,
        calls_without_price, calls_assumed, tokens_in, tokens_cached, tokens_written, tokens_out, tokens_reasoning,
        cost, cost_assumed)
    SELECT campaign, :shard::int, (now() AT TIME ZONE 'UTC')::date, judge, role, round, outcome,
        count(*) FILTER (WHERE NOT cached), count(*) FILTER (WHERE cached), count(*) FILTER (WHERE cost IS NULL),
        count(*) FILTER (WHERE assumed > 0), sum(tokens_in), sum(tokens_cached), sum(tokens_written),
        sum(tokens_out), sum(tokens_reasoning), coalesce(sum(cost), 0), sum(assumed)
    FROM stored GROUP BY campaign, judge, role, round, outcome ORDER BY campaign, judge, role, round, outcome
    ON CONFLICT (campaign_id, shard, day, judge_id, role, round, outcome) DO UPDATE SET
        calls = l.calls + EXCLUDED.calls, calls_cached = l.calls_cached + EXCLUDED.calls_cached,
        calls_without_price = l.calls_without_price + EXCLUDED.calls_without_price,
        calls_assumed = l.calls_assumed + EXCLUDED.calls_assumed,
        cost_assumed = l.cost_assumed + EXCLUDED.cost_assumed,
        tokens_in = l.tokens_in + EXCLUDED.tokens_in, tokens_cached = l.tokens_cached + EXCLUDED.tokens_cached,
        tokens_written = l.tokens_written + EXCLUDED.tokens_written,
        tokens_reasoning = l.tokens_reasoning + EXCLUDED.tokens_reasoning,
        tokens_out = l.tokens_out + EXCLUDED.tokens_out, cost = l.cost + EXCLUDED.cost
),
paid AS (
    SELECT campaign, holder, sum(usd) AS usd, sum(calls) AS calls, sum(coalesce(cost, 0) + assumed) AS cost
    FROM stored GROUP BY campaign, holder
),
returned AS (
    UPDATE judges_reservation v SET calls = greatest(0, v.calls - paid.calls),
        usd = CASE WHEN v.calls <= paid.calls THEN 0 ELSE greatest(0, v.usd - paid.usd) END
    FROM paid WHERE v.campaign_id = paid.campaign AND v.holder = paid.holder AND paid.calls > 0
),
booked AS (
    INSERT INTO judges_collectiontally AS t (collection_id, shard, spent, day, day_spent)
    SELECT c.collection_id, :shard::int, sum(paid.cost), (now() AT TIME ZONE 'UTC')::date, sum(paid.cost)
    FROM paid JOIN judges_campaign c ON c.id = paid.campaign GROUP BY 1 HAVING sum(paid.cost) > 0 ORDER BY 1
    ON CONFLICT (collection_id, shard) DO UPDATE
    -- A transaction that began before midnight may come after one of the new day, whose sum stays.
    SET spent = t.spent + EXCLUDED.spent, day = greatest(t.day, EXCLUDED.day),
        day_spent = CASE WHEN t.day > EXCLUDED.day THEN t.day_spent WHEN t.day < EXCLUDED.day THEN EXCLUDED.day_spent
                         ELSE t.day_spent + EXCLUDED.day_spent END
)
SELECT count(*) FROM stored;
