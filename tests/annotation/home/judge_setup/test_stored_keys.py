"""Keys that owners store in the browser: encrypted, written and never read, for one model at one address."""

import asyncio
import io
import json
import logging

import pytest
from django.core.management import call_command
from django.db import connection
from django.test import Client

from actions.errors import BadInput, BadOption
from actions.services import Actor
from annotation.access import unsent_forms
from annotation.home.judge_setup.options import ModelOptions
from annotation.home.judge_setup.services import add_model
from annotation.models import AuditEntry
from api.tokens import make_token
from corpus.models import Collection
from judges.batch.store import OUT
from judges.batch.store import _create_batch as create_batch
from judges.costs.judge_records import judge_of
from judges.errors import Refused
from judges.models import Campaign, JudgeVersion
from judges.models.batches import Batch
from judges.models.keys import StoredKey
from judges.models.probes import JudgeProbe
from judges.panels.configuration import store_judges_file
from judges.panels.judges_file import parse
from judges.panels.offline_panel import ensure_offline
from judges.providers import load_provider
from judges.records import Judge
from tests.annotation.home.judge_setup.test_models_page import add, change, control, last_message, load
from tests.factories import make_collection, make_user
from tests.modelserver.fixtures import LocalModels

pytestmark = pytest.mark.django_db
KEY = "sk-stored-0123456789-abcd"
OLD, NEW = "o" * 32, "n" * 32


@pytest.fixture
def olga(client, settings):
    """An owner of a site that stores keys, signed in."""
    settings.STORED_KEYS_SECRETS = [OLD]
    ensure_offline()
    make_collection("books")
    user = make_user("olga", is_owner=True)
    client.force_login(user)
    return user


@pytest.fixture
def yes(client, olga, model_server: LocalModels):
    """A model of the local server with a stored key."""
    added = add(client, provider="openai-compatible", model="yes", base_url=model_server.openai, key=KEY)
    assert added.status_code == 302, added.context["add_form"].errors
    return JudgeVersion.objects.get(name="yes")


def read(user, path: str):
    """Answer of the API to an owner with a token of their own."""
    headers = {"Authorization": f"Bearer {make_token(user, None, name='n', scopes=['read'], days=1)[1]}"}
    return Client().get(f"/api/v1/collections/{path}", headers=headers)


def everything_stored() -> str:
    """All rows of all tables, as text."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace")
        tables = [name for (name,) in cursor.fetchall()]
        rows = []
        for table in tables:
            cursor.execute(f'SELECT t::text FROM "{table}" t')
            rows += [text for (text,) in cursor.fetchall()]
    return "\n".join(rows)


def credentials(judge: JudgeVersion) -> dict[str, str]:
    """The headers that a worker would send for a judge as it is stored now."""
    record = judge_of(judge)

    async def authorize() -> dict[str, str]:
        provider = load_provider(record.provider)(record)
        try:
            return await provider.authorized(record)  # type: ignore[attr-defined]
        finally:
            await provider.close()

    return asyncio.run(authorize())


def test_a_site_without_the_secret_offers_no_field_and_stores_no_key(client, olga, settings):
    assert "QUORUM_STORED_KEYS_SECRET" not in client.get("/c/books/models/").text
    settings.STORED_KEYS_SECRETS = []
    page = client.get("/c/books/models/")
    assert "key" not in page.context["add_form"].fields and "QUORUM_STORED_KEYS_SECRET" in page.text
    with pytest.raises(BadOption) as refused:
        add_model(Actor("olga"), Collection.objects.get(), ModelOptions(provider="openai", model="m", key=KEY))
    assert [option for option, _sentence in refused.value.problems] == ["key"] and KEY not in str(refused.value)
    assert not StoredKey.objects.exists()


def test_a_stored_key_is_sent_with_a_call_and_stands_in_no_table_page_answer_or_line(client, yes, olga, caplog):
    caplog.set_level(logging.DEBUG)
    assert credentials(yes) == {"Authorization": f"Bearer {KEY}"}
    tested = client.post("/c/books/models/test/", {"judge": "yes"}, follow=True)
    assert JudgeProbe.objects.get().passes
    pages = [tested, *map(client.get, ("/c/books/models/", f"/c/books/models/{yes.pk}/", "/c/books/audit-log/"))]
    pages += [read(olga, "books/judges"), read(olga, "books/audit-log")]
    assert all(page.status_code == 200 and KEY not in page.content.decode() for page in pages)
    assert "ends in …abcd" in pages[1].content.decode() and "ends in …abcd" in pages[2].content.decode()
    assert pages[4].json()["items"][0]["stored_key"] == "abcd"
    assert KEY not in everything_stored() and KEY not in caplog.text
    assert AuditEntry.objects.get(act="judge.added").details["stores_key"] is True
    record = judge_of(yes)
    assert KEY not in repr(record) and record.encrypted_key and record.encrypted_key not in repr(record)


def test_a_key_is_tried_in_a_call_to_a_server_that_repeats_it_and_is_masked(client, yes, model_server):
    model_server.script({"yes": {"fault": "echo-key"}})
    response = client.post("/c/books/models/test/", {"judge": "yes"}, follow=True)
    assert not JudgeProbe.objects.get().passes
    assert KEY not in response.content.decode() and KEY not in everything_stored()


@pytest.mark.parametrize(
    "options", [{"base_url": "http://127.0.0.1:9/v1"}, {"provider": "vllm"}, {"api_key_env": "OWN_API_KEY"}]
)
def test_another_provider_address_or_variable_deletes_the_key(client, yes, options):
    response = change(client, "yes", **options)
    assert response.status_code == 302, response.context["form"].errors
    assert not StoredKey.objects.exists()
    judge = JudgeVersion.objects.get(name="yes", is_current=True)
    assert not judge.api_key_env.startswith("stored:")
    assert "api_key_env" in options or credentials(judge) == {}, "the new address gets nothing"


def test_a_key_stays_while_other_settings_change_and_a_new_one_replaces_it(client, yes):
    change(client, "yes", max_concurrency="3")
    assert credentials(JudgeVersion.objects.get(name="yes", is_current=True)) == {"Authorization": f"Bearer {KEY}"}
    change(client, "yes", key="sk-other-0123456789-wxyz")
    assert StoredKey.objects.get().ending == "wxyz"
    judge = JudgeVersion.objects.get(name="yes", is_current=True)
    assert (judge.version, credentials(judge)) == (2, {"Authorization": "Bearer sk-other-0123456789-wxyz"})


def test_a_judges_file_moves_no_key_to_another_address_or_judge(client, yes):
    text = client.get("/c/books/models/").context["file_form"]["text"].value()
    assert 'api_key_env = "stored:yes"' in text and load(client, text).status_code == 302
    for wrong in (text.replace(yes.base_url, "http://127.0.0.1:9/v1"), text.replace('name = "yes"', 'name = "no"')):
        assert load(client, wrong).status_code == 422
        with pytest.raises(BadInput):
            store_judges_file(parse(wrong))
    assert JudgeVersion.objects.exclude(provider="offline").get().base_url == yes.base_url


def test_a_row_whose_content_or_address_was_exchanged_gives_no_key(client, yes, model_server):
    add(client, provider="openai-compatible", model="no", base_url="http://127.0.0.1:9/v1", key="sk-of-no-0123456789")
    ours, theirs = StoredKey.objects.get(name="stored:yes"), StoredKey.objects.get(name="stored:no")
    StoredKey.objects.filter(pk=theirs.pk).update(ciphertext=ours.ciphertext)
    with pytest.raises(Refused, match="entered for something else"):
        credentials(JudgeVersion.objects.get(name="no"))
    JudgeVersion.objects.filter(pk=yes.pk).update(base_url="http://127.0.0.1:9/v1")
    yes.refresh_from_db()
    with pytest.raises(Refused, match="entered for something else"):
        credentials(yes)


def test_a_secret_is_changed_in_three_steps_and_a_missing_one_is_said_where_the_model_is_tested(client, yes, settings):
    for secrets, words in (([NEW], "differs from that"), ([], "set QUORUM_STORED_KEYS_SECRET")):
        settings.STORED_KEYS_SECRETS = secrets
        assert words in last_message(client.post("/c/books/models/test/", {"judge": "yes"}, follow=True))
    settings.STORED_KEYS_SECRETS = [NEW, OLD]
    assert credentials(yes)["Authorization"].endswith(KEY)
    call_command("rotate_stored_keys", stdout=io.StringIO())
    settings.STORED_KEYS_SECRETS = [NEW]
    assert credentials(yes)["Authorization"].endswith(KEY)


def test_a_key_that_was_deleted_is_asked_for_again(client, yes):
    control(client, "yes", "delete-key")
    assert not StoredKey.objects.exists()
    with pytest.raises(Refused, match="is missing"):
        credentials(yes)
    change(client, "yes", key=KEY)
    control(client, "yes", "delete")
    assert not StoredKey.objects.exists()
    control(client, "yes", "restore")
    assert "has no key. Enter it again" in last_message(
        client.post("/c/books/models/test/", {"judge": "yes"}, follow=True)
    )


def test_a_form_that_is_kept_until_the_sign_in_is_kept_without_the_key(client, olga):
    client.logout()
    add(client, key=KEY, base_url="http://127.0.0.1:9/v1")
    kept = client.session[unsent_forms.KEY]
    assert "base_url" in dict(kept["fields"]) and KEY not in str(kept)


def test_an_open_batch_is_read_with_the_key_that_is_stored_now(client, yes):
    campaign = Campaign.objects.create(collection=Collection.objects.get(), policy="single", panel="main")
    create_batch(connection.connection, campaign.pk, judge_of(yes), [])
    assert Batch.objects.get().judge["encrypted_key"] == ""
    change(client, "yes", key="sk-other-0123456789-wxyz")
    (row,) = connection.connection.execute(OUT, [campaign.pk])
    assert Judge(**json.loads(row[3])).encrypted_key == StoredKey.objects.get().ciphertext
