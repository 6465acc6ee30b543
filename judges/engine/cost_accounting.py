"""Bookings of every stored call in counters, ledger and budgets: one text for all statements that store calls.

It stands between `written` (the calls' rows as they were stored) and the statement's last SELECT; `r` has the same
calls with what each held of the budget. Every row that it updates belongs to the writer's shard or to its process, so
that processes that commit at once do not wait for each other (docs/adr/0110).
"""

from judges.campaigns.counters import ADD, ADD_COST

# CTEs for a statement that has `r` (rows sent) and `written` (rows stored: without those that were stored before, so
# that nothing is counted twice). Each INSERT sorts its keys: two writers that update the same counters in different
# orders would deadlock.
BOOKING = """
sums AS (
    SELECT campaign_id, %(shard)s::int AS shard, key, sum(value) AS value
    FROM written CROSS JOIN LATERAL (VALUES
        ('calls', (NOT cached)::int::float8),
        ('calls_cached', cached::int::float8),
        ('calls_failed', (outcome = 'error')::int::float8),
        ('calls_without_price', (cost IS NULL)::int::float8),
        ('cost', COALESCE(cost, 0)),
        ('calls_assumed', (assumed > 0)::int::float8), ('cost_assumed', assumed),
        ('tokens_in', tokens_in), ('tokens_cached', tokens_cached), ('tokens_written', tokens_written),
        ('tokens_out', tokens_out), ('tokens_reasoning', tokens_reasoning),
        (left('answered:' || judge_id || ':' || answered_by, 100), (answered_by <> '')::int)) AS k(key, value)
    WHERE value <> 0 GROUP BY 1, 3 ORDER BY 1, 3
),
tallied AS ({tally}),
entered AS (
    INSERT INTO judges_ledger AS l (campaign_id, shard, day, judge_id, role, round, outcome, calls, calls_cached,
        calls_without_price, calls_assumed, tokens_in, tokens_cached, tokens_written, tokens_out, tokens_reasoning,
        cost, cost_assumed)
    SELECT campaign_id, %(shard)s::int, (now() AT TIME ZONE 'UTC')::date, judge_id, role, round, outcome,
        count(*) FILTER (WHERE NOT cached), count(*) FILTER (WHERE cached), count(*) FILTER (WHERE cost IS NULL),
        count(*) FILTER (WHERE assumed > 0), sum(tokens_in), sum(tokens_cached), sum(tokens_written),
        sum(tokens_out), sum(tokens_reasoning), COALESCE(sum(cost), 0), sum(assumed)
    FROM written GROUP BY campaign_id, judge_id, role, round, outcome
    ORDER BY campaign_id, judge_id, role, round, outcome
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
    SELECT r.campaign, r.holder, sum(r.usd) AS usd, sum(r.calls) AS calls,
           sum(COALESCE(written.cost, 0) + written.assumed) AS cost
    FROM r JOIN written ON written.id = r.id GROUP BY 1, 2
),
returned AS (
    UPDATE judges_reservation v SET calls = GREATEST(0, v.calls - paid.calls),
        usd = CASE WHEN v.calls <= paid.calls THEN 0 ELSE GREATEST(0, v.usd - paid.usd) END
    FROM paid WHERE v.campaign_id = paid.campaign AND v.holder = paid.holder AND paid.calls > 0
),
booked AS (
    INSERT INTO judges_collectiontally AS t (collection_id, shard, spent, day, day_spent)
    SELECT c.collection_id, %(shard)s::int, sum(paid.cost), (now() AT TIME ZONE 'UTC')::date, sum(paid.cost)
    FROM paid JOIN judges_campaign c ON c.id = paid.campaign GROUP BY 1 HAVING sum(paid.cost) > 0 ORDER BY 1
    {add_cost}
)
""".format(tally=ADD.format(rows="SELECT campaign_id, shard, key, value FROM sums"), add_cost=ADD_COST)
