-- Pairs of failed routes whose label people have not settled. A pair that a later campaign labelled has that
-- one's label. Reads only.
SELECT l.pair_id, failed.campaign, w.stratum AS route
FROM unnest(:campaigns::int[], :routes::text[]) AS failed(campaign, route)
JOIN judges_campaign f ON f.collection_id = :collection AND f.number = failed.campaign
JOIN judges_work w ON w.campaign_id = f.id AND w.stratum = failed.route AND w.state = 'labelled'
JOIN corpus_label l ON l.pair_id = w.pair_id AND l.aspect_id IS NULL AND l.origin NOT IN ('people', 'adjudicator')
JOIN current_pair p ON p.id = l.pair_id AND p.collection_id = :collection
WHERE NOT EXISTS (
    SELECT FROM judges_work n JOIN judges_campaign c ON c.id = n.campaign_id AND c.kind = 'judging'
    WHERE n.pair_id = w.pair_id AND n.campaign_id > w.campaign_id AND n.state = 'labelled');
