-- What the filters of the table of pairs offer in a collection: campaigns that have pairs, members, and routes of
-- labels of one campaign, or of all (null), with the number of judges who voted where it is the same for all. Reads only.
SELECT 'campaign', number::text, policy FROM judges_campaign WHERE collection_id = :collection AND kind <> 'costs'
UNION ALL
SELECT 'person', u.username, '' FROM annotation_membership m JOIN annotation_user u ON u.id = m.user_id
WHERE m.collection_id = :collection
UNION ALL
SELECT 'route', substr(t.key, 7),
       CASE WHEN min(cardinality(c.voters)) = max(cardinality(c.voters)) AND NOT bool_or(c.early_stop)
            THEN max(cardinality(c.voters)) ELSE 0 END::text
FROM judges_tally t JOIN judges_campaign c ON c.id = t.campaign_id
WHERE c.collection_id = :collection AND (:campaign::bigint IS NULL OR c.id = :campaign) AND t.key LIKE 'route:%'
  AND t.value > 0
GROUP BY t.key;
