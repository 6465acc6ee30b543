-- Gold pairs that may become checks, with the turns of their newest debate: none that somebody still waits for as an
-- ordinary item. Reads only.
SELECT p.id AS pair, p.query_id AS query, g.grade,
       (SELECT json_agg(json_build_object('side', t.role, 'round', t.round, 'couple', t.agent_pair,
                                          'verdict', t.verdict, 'offline', v.provider = 'offline')
                        ORDER BY t.round, t.agent_pair, t.role DESC)
        FROM counted_attempt t JOIN judges_judgeversion v ON v.id = t.judge_id
        WHERE t.pair_id = p.id AND t.role IN ('for', 'against')
          AND t.campaign_id = (SELECT campaign_id FROM newest_debate(p.id))) AS turns,
       (SELECT json_object_agg(a.couples, a.rounds) FROM annotation_goldarguments a WHERE a.pair_id = p.id) AS argued
FROM reference_grades(:collection) g JOIN current_pair p ON p.id = g.pair_id
WHERE NOT EXISTS (SELECT FROM corpus_item i WHERE i.pair_id = p.id AND i.reason IN ('check', 'qualification')
                  AND i.state = 'standing')
  AND (SELECT count(*) FROM corpus_item i WHERE i.pair_id = p.id AND i.state = 'open') = 0;
