-- Write an alarm of a route as the trigger on counters does, which tells the same route of the same campaign once with this.
SELECT write_webhook_event(:collection, 'audit.alarm', 'campaign:' || :campaign::text,
    jsonb_build_object('campaign', :number::int, 'route', :route::text),
    'audit.alarm:' || :campaign::text || ':' || :route::text);
