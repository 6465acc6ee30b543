-- The figures beside an admin's entries of the navigation; pairs and conflicts are counted up to `many`. Reads only.
SELECT
    (SELECT count(*) FROM (SELECT FROM corpus_item WHERE collection_id = :collection AND state = 'conflict'
                           LIMIT :many) conflicts),
    (SELECT count(*) FROM (SELECT FROM corpus_pair WHERE collection_id = :collection LIMIT :many) pairs),
    (SELECT count(*) FROM judges_campaign WHERE collection_id = :collection AND kind = 'judging'),
    (SELECT count(*) FROM annotation_membership WHERE collection_id = :collection AND is_active),
    (SELECT count(*) FROM annotation_snapshot WHERE collection_id = :collection),
    (SELECT count(*) FROM benchmark_run WHERE collection_id = :collection),
    -- Krippendorff's alpha of the judges over all pairs; where they have none, that of people. From 30 pairs on.
    (SELECT coalesce(CASE WHEN ("values" #>> '{kappas,0,kappa,n}')::int >= 30 THEN "values" #>> '{kappas,0,kappa,value}' END,
                     CASE WHEN ("values" #>> '{kappas,3,kappa,n}')::int >= 30 THEN "values" #>> '{kappas,3,kappa,value}' END
                    )::float
     FROM annotation_storedresult WHERE collection_id = :collection AND kind = 'label-quality'),
    -- Webhooks that were disabled by nobody.
    (SELECT count(*) FROM api_webhook WHERE collection_id = :collection AND disabled IN ('failing', 'gone')),
    -- Comparisons for people to answer.
    EXISTS (SELECT FROM annotation_comparisonset WHERE collection_id = :collection AND people > 0
            AND paused_at IS NULL AND ended_at IS NULL);
