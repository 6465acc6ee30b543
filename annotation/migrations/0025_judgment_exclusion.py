import pgtrigger.compiler
import pgtrigger.migrations
from django.db import migrations


class Migration(migrations.Migration):
    """Another name in Python; the table keeps its own, and the triggers follow the name."""

    dependencies = [("annotation", "0024_requests_are_jobs")]

    operations = [
        pgtrigger.migrations.RemoveTrigger(model_name="settingaside", name="append_only"),
        pgtrigger.migrations.RemoveTrigger(model_name="settingaside", name="no_truncate"),
        migrations.AlterModelTable("settingaside", "annotation_settingaside"),
        migrations.RenameModel("SettingAside", "JudgmentExclusion"),
        pgtrigger.migrations.AddTrigger(
            model_name='judgmentexclusion',
            trigger=pgtrigger.compiler.Trigger(name='append_only', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot update or delete rows from % table', TG_TABLE_NAME;", hash='8f53a380d2b5de04c2c2cdda78cd43a1f59132d1', operation='UPDATE OR DELETE', pgid='pgtrigger_append_only_fda73', table='annotation_settingaside', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='judgmentexclusion',
            trigger=pgtrigger.compiler.Trigger(name='no_truncate', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'Cannot truncate table %: it is append-only', TG_TABLE_NAME;", hash='34691f74c4328c7316c6506a2b7ad256126d1389', level='STATEMENT', operation='TRUNCATE', pgid='pgtrigger_no_truncate_4a99f', table='annotation_settingaside', when='BEFORE')),
        ),
    ]
