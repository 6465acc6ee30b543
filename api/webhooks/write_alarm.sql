-- Write an alarm of a route as the trigger on counters does; the shared key lets each campaign's route alarm once.
SELECT write_webhook_event(:collection, 'audit.alarm', 'campaign:' || :campaign::text,
    jsonb_build_object('campaign', :number::int, 'route', :route::text),
    'audit.alarm:' || :campaign::text || ':' || :route::text);
