-- Set the probability of a stratum's pairs: its share that is in the sample, for those that were drawn before as
-- well. Lock order: the campaign (locked before); audits.
UPDATE judges_audit a SET probability = s.share
FROM judges_work w JOIN judges_campaign g ON g.id = w.campaign_id, (
    SELECT f.stratum, f.part, count(b.id)::float8 / count(*) AS share
    FROM audit_frame(:campaign) f LEFT JOIN judges_audit b ON b.campaign_id = :campaign AND b.pair_id = f.pair_id
    GROUP BY f.stratum, f.part) s
WHERE a.campaign_id = :campaign AND w.campaign_id = a.campaign_id AND w.pair_id = a.pair_id
  AND a.stratum = s.stratum AND coalesce(width_bucket(w.ended_at, g.sampled_at), 0) = s.part
  AND s.share > 0 AND a.probability <> s.share;
