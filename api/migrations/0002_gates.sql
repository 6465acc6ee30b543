-- The event of a gate, as those of 0001_events.sql: written in the transaction that stores the verdict, by a row that never changes.

CREATE FUNCTION tell_gate_decided() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM write_webhook_event(NEW.collection_id, 'gate.decided', 'gate:' || NEW.id, jsonb_build_object(
        'gate', NEW.number, 'verdict', NEW.verdict, 'run', NEW.result ->> 'run', 'against', NEW.result ->> 'against',
        'deciding_pairs', NEW.result -> 'deciding_pairs', 'reason', NEW.result ->> 'reason'));
    RETURN NULL;
END $$;
CREATE TRIGGER webhook_gate_decided AFTER INSERT ON benchmark_gate FOR EACH ROW
EXECUTE FUNCTION tell_gate_decided();
