from django.db import migrations

TABLE = """
CREATE TABLE judges_attemptbody (
    campaign_id bigint NOT NULL REFERENCES judges_campaign ON DELETE CASCADE,
    attempt_id bigint NOT NULL,
    messages bytea NOT NULL,
    raw bytea NOT NULL,
    PRIMARY KEY (campaign_id, attempt_id)
) PARTITION BY HASH (campaign_id);
"""
PARTITIONS = 16


def create() -> str:
    """The table and its partitions."""
    parts = [
        f"CREATE TABLE judges_attemptbody_{n} PARTITION OF judges_attemptbody "
        f"FOR VALUES WITH (MODULUS {PARTITIONS}, REMAINDER {n}); "
        f"ALTER TABLE judges_attemptbody_{n} ALTER COLUMN messages SET STORAGE EXTERNAL, ALTER COLUMN raw SET STORAGE EXTERNAL;"
        for n in range(PARTITIONS)
    ]
    return TABLE + "\n".join(parts)


class Migration(migrations.Migration):
    """Bodies of attempts, partitioned by campaign: what is counted never reads them."""

    dependencies = [("judges", "0001_initial")]

    operations = [migrations.RunSQL(create(), "DROP TABLE judges_attemptbody")]
