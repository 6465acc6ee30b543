"""What statements share: the newest debate, last votes, a collection's spending, what audits are drawn from, the states of pairs."""

from pathlib import Path

from django.db import migrations

UNDO = "DROP FUNCTION pair_states, audit_frame, collection_spending, last_votes, answer_counts, debate_turns, newest_debate, enqueue_work"


class Migration(migrations.Migration):
    dependencies = [("judges", "0002_database"), ("corpus", "0003_functions")]

    operations = [migrations.RunSQL(Path(__file__).with_suffix(".sql").read_text(), UNDO)]
