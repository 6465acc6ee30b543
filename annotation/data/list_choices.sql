-- What the filters of the table of pairs offer in a collection: campaigns, members, and routes of labels of one
-- campaign, or of all (null). Reads only.
SELECT 'campaign', number::text, policy FROM judges_campaign WHERE collection_id = :collection
UNION ALL
SELECT 'person', u.username, '' FROM annotation_membership m JOIN annotation_user u ON u.id = m.user_id
WHERE m.collection_id = :collection
UNION ALL
SELECT DISTINCT 'route', substr(t.key, 7), '' FROM judges_tally t JOIN judges_campaign c ON c.id = t.campaign_id
WHERE c.collection_id = :collection AND (:campaign::bigint IS NULL OR c.id = :campaign) AND t.key LIKE 'route:%'
  AND t.value > 0;
