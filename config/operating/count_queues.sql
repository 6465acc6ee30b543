-- Campaigns by state, tasks by collection (each count by an index of its own), and leases with the age of the
-- one that ran out first. Reads only.
SELECT 'campaign', c.state, '', count(*), NULL::float8 FROM judges_campaign c GROUP BY c.state
UNION ALL
SELECT 'task', n.name, s.state, (
    SELECT count(*) FROM corpus_item i WHERE i.collection_id = n.id AND i.state = s.state), NULL
FROM corpus_collection n CROSS JOIN (VALUES ('open'), ('conflict')) s(state)
UNION ALL
SELECT 'task', n.name, 'held', count(*), NULL
FROM annotation_assignment a JOIN annotation_membership m ON m.id = a.membership_id
    JOIN corpus_collection n ON n.id = m.collection_id
WHERE a.state = 'open' AND a.lease_until >= now() GROUP BY n.name
UNION ALL
SELECT 'lease', 'task', '', count(*), extract(epoch FROM now() - min(lease_until))::float8
FROM annotation_assignment WHERE state = 'open'
UNION ALL
SELECT 'lease', 'pair', '', count(*), extract(epoch FROM now() - min(lease_until))::float8
FROM judges_work w WHERE state = 'running'
    AND EXISTS (SELECT 1 FROM judges_campaign c WHERE c.id = w.campaign_id AND c.state = 'running');
