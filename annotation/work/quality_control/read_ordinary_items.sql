-- The newest ordinary items with the turns that their page shows: what a check must look like. Reads only.
SELECT p.id AS pair, p.query_id AS query, i.reason, i.arm,
       (SELECT json_agg(json_build_object('side', t.role, 'round', t.round, 'couple', t.agent_pair,
                                          'verdict', t.verdict, 'offline', v.provider = 'offline')
                        ORDER BY t.round, t.agent_pair, t.role DESC)
        FROM counted_attempt t JOIN judges_judgeversion v ON v.id = t.judge_id
        WHERE t.pair_id = p.id AND t.role IN ('for', 'against')
          AND t.campaign_id = (SELECT campaign_id FROM newest_debate(p.id))) AS turns
FROM (SELECT * FROM corpus_item WHERE collection_id = :collection AND state <> 'withdrawn'
        AND reason <> ALL (:others) ORDER BY id DESC LIMIT 2000) i
JOIN corpus_pair p ON p.id = i.pair_id;
