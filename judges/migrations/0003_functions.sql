-- Functions that statements share; those that read are taken in as if they were written there.

-- Add pairs to a campaign in the order given, count them in its tally, and return how many they are. Workers take up
-- work in the order of its rows. No locks but the campaign's.

CREATE FUNCTION enqueue_work(campaign bigint, pairs bigint[]) RETURNS bigint LANGUAGE sql AS $$
    WITH added AS (
        INSERT INTO judges_work (campaign_id, pair_id, state, fence, claims, reason, error, attempt_base)
        SELECT campaign, listed.pair, 'pending', 0, 0, '', '', 0
        FROM unnest(pairs) WITH ORDINALITY AS listed(pair, place) ORDER BY listed.place RETURNING 1
    ), counted AS (
        INSERT INTO judges_tally AS t (campaign_id, shard, key, value)
        SELECT campaign, 0, 'pairs', count(*) FROM added HAVING count(*) > 0
        ON CONFLICT (campaign_id, shard, key) DO UPDATE SET value = t.value + EXCLUDED.value
    )
    SELECT count(*) FROM added
$$;

-- The campaign of a pair's newest debate; one that was broken off comes after all others.

CREATE FUNCTION newest_debate(pair bigint) RETURNS TABLE (campaign_id bigint) LANGUAGE sql STABLE ROWS 1 AS $$
    SELECT c.campaign_id FROM counted_attempt c
    LEFT JOIN judges_work w ON w.campaign_id = c.campaign_id AND w.pair_id = c.pair_id
    WHERE c.pair_id = pair AND c.role IN ('for', 'against')
    ORDER BY coalesce(w.state IN ('labelled', 'escalated'), false) DESC, c.campaign_id DESC LIMIT 1
$$;

-- Its turns, as the judging page shows them.

CREATE FUNCTION debate_turns(pair bigint) RETURNS TABLE (turns json) LANGUAGE sql STABLE ROWS 1 AS $$
    SELECT json_agg(json_build_object('side', t.role, 'round', t.round, 'couple', t.agent_pair, 'verdict', t.verdict,
                                      'reason', t.reason, 'quotes', t.quotes, 'window', t."window")
                    ORDER BY t.round, t.agent_pair, t.role DESC)
    FROM counted_attempt t
    WHERE t.pair_id = pair AND t.role IN ('for', 'against')
      AND t.campaign_id = (SELECT n.campaign_id FROM newest_debate(pair) n)
$$;

-- What a campaign's debate and panel said of a pair. `turns`: that count; `last_turns`: with a verdict, in the last round;
-- `agreed_in`: the first round in which all agents agreed.

CREATE FUNCTION answer_counts(campaign bigint, pair bigint, rounds int, agents int) RETURNS TABLE (
    turns bigint, last_turns bigint, agreed_in smallint, agreed_verdict smallint, votes bigint, yes bigint, no bigint)
LANGUAGE sql STABLE ROWS 1 AS $$
    SELECT d.turns, d.last_turns, agreed.round, agreed.verdict, v.votes, v.yes, v.no
    FROM (
        SELECT count(*) AS turns, count(a.verdict) FILTER (WHERE a.round = rounds) AS last_turns
        FROM counted_attempt a
        WHERE a.campaign_id = campaign AND a.pair_id = pair AND a.role IN ('for', 'against')
    ) d
    LEFT JOIN (
        SELECT a.round, min(a.verdict) AS verdict FROM counted_attempt a
        WHERE a.campaign_id = campaign AND a.pair_id = pair AND a.role IN ('for', 'against')
        GROUP BY a.round HAVING count(a.verdict) = agents AND min(a.verdict) = max(a.verdict)
        ORDER BY a.round LIMIT 1
    ) agreed ON true
    CROSS JOIN (
        SELECT count(*) AS votes, count(*) FILTER (WHERE a.verdict = 1) AS yes,
            count(*) FILTER (WHERE a.verdict = 0) AS no
        FROM counted_attempt a
        WHERE a.campaign_id = campaign AND a.pair_id = pair AND a.role = 'vote'
    ) v
$$;

-- Each pair's own last votes that are complete, whichever campaign cast them; where it has none, its last ones. `panel`:
-- how many votes make them whole; a single judge is no panel.

CREATE FUNCTION last_votes(campaigns bigint[], pairs bigint[] DEFAULT NULL)
RETURNS TABLE (pair_id bigint, campaign_id bigint, yes bigint, votes bigint, panel int) LANGUAGE sql STABLE AS $$
    SELECT DISTINCT ON (v.pair_id) v.pair_id, v.campaign_id, v.yes, v.votes,
        CASE WHEN c.policy = 'single' THEN 0 ELSE cardinality(c.voters) END
    FROM (
        SELECT a.pair_id, a.campaign_id, sum(a.verdict) AS yes, count(*) AS votes FROM counted_attempt a
        WHERE (campaigns IS NULL OR a.campaign_id = ANY(campaigns)) AND (pairs IS NULL OR a.pair_id = ANY(pairs))
          AND a.role = 'vote' AND a.outcome = 'labelled'
        GROUP BY a.pair_id, a.campaign_id
    ) v JOIN judges_campaign c ON c.id = v.campaign_id
    ORDER BY v.pair_id, (c.policy <> 'single' AND v.votes >= cardinality(c.voters)) DESC, v.campaign_id DESC
$$;

-- What a collection's campaigns spent, and how much of it today; what their workers hold. In USD.

CREATE FUNCTION collection_spending(collection bigint) RETURNS TABLE (spent float8, today float8, held float8)
LANGUAGE sql STABLE ROWS 1 AS $$
    SELECT coalesce(sum(t.spent), 0),
        coalesce(sum(t.day_spent) FILTER (WHERE t.day = (now() AT TIME ZONE 'UTC')::date), 0),
        (SELECT coalesce(sum(v.usd), 0) FROM judges_reservation v JOIN judges_campaign c ON c.id = v.campaign_id
         WHERE c.collection_id = collection)
    FROM judges_collectiontally t WHERE t.collection_id = collection
$$;

-- A campaign's labelled pairs that no person met for another reason, with the number of audits.uniform_draw. `part`: 0,
-- and one more after each end of the campaign; `cell`: route and part together.

CREATE FUNCTION audit_frame(campaign bigint)
RETURNS TABLE (pair_id bigint, stratum text, part int, cell text, label smallint, number text)
LANGUAGE sql STABLE AS $$
    SELECT w.pair_id, w.stratum::text, p.part, w.stratum || '/' || p.part, w.label,
        substr(encode(sha256(convert_to('audit:' || c.seed || ':' || w.pair_id, 'UTF8')), 'hex'), 1, 12)
    FROM judges_work w JOIN judges_campaign g ON g.id = w.campaign_id JOIN corpus_collection c ON c.id = g.collection_id
    CROSS JOIN LATERAL (SELECT coalesce(width_bucket(w.ended_at, g.sampled_at), 0) AS part) p
    WHERE w.campaign_id = campaign AND w.state = 'labelled' AND w.stratum <> ''
      AND NOT EXISTS (SELECT FROM corpus_item i
                      WHERE i.pair_id = w.pair_id AND i.reason <> 'audit' AND NOT is_measuring(i.reason))
$$;

-- A row for each pair with current texts that is to be judged, or is judged; `pairs`: these alone. Every pair has one
-- state, so the states of a collection sum up to its pairs. `reason`: why people were asked; `agreed`: the round of its
-- newest debate that agreed; `audited`: people check its automatic label, or have. A pair that people met in an audit
-- alone stays labelled by judges, with the verdict that was audited.

CREATE FUNCTION pair_states(collections bigint[], pairs bigint[] DEFAULT NULL) RETURNS TABLE (
    collection bigint, pair bigint, state text, verdict int, reason text, origin text, agreed bigint, audited bool)
LANGUAGE sql STABLE AS $$
SELECT p.collection_id, p.id,
    CASE WHEN l.origin NOT IN ('people', 'adjudicator') THEN 'labelled'
         WHEN l.origin IS NOT NULL AND asked.audited AND asked.settled IS NULL THEN 'labelled'
         WHEN l.origin IS NOT NULL THEN 'settled'
         WHEN asked.open IS NOT NULL THEN 'open'
         WHEN judged.running THEN 'running'
         WHEN judged.pending THEN 'pending'
         WHEN judged.failed > coalesce(judged.ended[1], 0) THEN 'failed'
         ELSE 'unjudged' END,
    CASE WHEN l.origin IN ('people', 'adjudicator') THEN asked.verdict ELSE (l.grade >= c.relevant_from)::int END,
    CASE WHEN l.origin IN ('people', 'adjudicator') THEN coalesce(asked.settled, 'import') ELSE asked.open END::text,
    coalesce(l.origin, '')::text, coalesce(judged.ended[2], 0), coalesce(asked.audited, false)
FROM corpus_pair p
JOIN corpus_collection c ON c.id = p.collection_id
JOIN corpus_query q ON q.id = p.query_id AND q.is_current
JOIN corpus_document d ON d.id = p.document_id AND d.is_current
LEFT JOIN corpus_label l ON l.pair_id = p.id AND l.aspect_id IS NULL
LEFT JOIN (
    SELECT i.pair_id, bool_or(i.reason = 'audit' AND i.state <> 'withdrawn') AS audited,
        (array_agg(i.reason ORDER BY i.id) FILTER (WHERE i.state IN ('open', 'conflict')
            AND i.reason NOT IN ('audit', 'evidence') AND NOT is_measuring(i.reason)))[1] AS open,
        (array_agg(i.reason ORDER BY i.id DESC) FILTER (WHERE i.state = 'settled'
            AND i.reason NOT IN ('audit', 'evidence') AND NOT is_measuring(i.reason)))[1] AS settled,
        (SELECT a.label FROM judges_audit a WHERE a.pair_id = i.pair_id ORDER BY a.campaign_id DESC LIMIT 1) AS verdict
    FROM corpus_item i
    WHERE i.collection_id = ANY(collections) AND (pairs IS NULL OR i.pair_id = ANY(pairs)) GROUP BY i.pair_id
) asked ON asked.pair_id = p.id
LEFT JOIN (
    SELECT w.pair_id, bool_or(g.live AND w.state = 'running') AS running,
        bool_or(g.live AND w.state = 'pending') AS pending,
        max(w.campaign_id) FILTER (WHERE w.state = 'failed' AND NOT g.cancelled) AS failed,
        max(ARRAY[w.campaign_id, coalesce(w.agreed_in_round, 0)]) FILTER (
            WHERE w.state IN ('labelled', 'escalated')) AS ended
    FROM judges_work w JOIN (
        SELECT id, campaign.state IN ('running', 'paused', 'budget') AS live, campaign.state = 'cancelled' AS cancelled
        FROM judges_campaign campaign WHERE campaign.collection_id = ANY(collections) AND campaign.kind = 'judging'
    ) g ON g.id = w.campaign_id WHERE pairs IS NULL OR w.pair_id = ANY(pairs) GROUP BY w.pair_id
) judged ON judged.pair_id = p.id
WHERE p.collection_id = ANY(collections) AND (pairs IS NULL OR p.id = ANY(pairs)) AND (
    p.is_candidate OR l.origin IS NOT NULL OR asked.open IS NOT NULL
    OR judged.running OR judged.pending OR judged.failed IS NOT NULL)
$$;
