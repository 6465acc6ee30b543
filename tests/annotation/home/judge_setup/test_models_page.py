"""The page of models: the judges file in the browser, keys, the test of a model, debaters and panel."""

import tomllib
from pathlib import Path

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from annotation.models import AuditEntry, Role
from config.env import ROOT
from judges.models import Campaign, JudgeVersion, Panel
from judges.models.probes import JudgeProbe
from judges.panels.configuration import store_judges_file
from judges.panels.file_text import write_judges_text
from judges.panels.judges_file import parse
from judges.panels.offline_panel import ensure_offline
from tests.factories import make_collection, make_member, make_user
from tests.modelserver.fixtures import KEY, LocalModels

pytestmark = pytest.mark.django_db
OPENAI = '[[judge]]\nname = "one"\nprovider = "openai"\nmodel = "gpt-4o-mini"\n'
SECRET = "sk-never-on-a-page-0123456789"
VARIABLE = "BOOKS_API_KEY"


@pytest.fixture
def books():
    ensure_offline()
    return make_collection("books")


@pytest.fixture
def olga(books, client):
    """An owner of the site, signed in."""
    user = make_user("olga", is_owner=True)
    client.force_login(user)
    return user


@pytest.fixture
def charlie(books, client):
    """An admin of the collection, signed in."""
    user = make_member(books, "charlie", Role.ADMIN).user
    client.force_login(user)
    return user


def load(client, text, **more):
    return client.post("/c/books/models/load/", {"text": text, "load": "1", **more})


def page(client):
    response = client.get("/c/books/models/")
    assert response.status_code == 200
    return response


def configured():
    return set(JudgeVersion.objects.exclude(provider="offline").values_list("name", flat=True))


def test_an_owner_pastes_a_file_and_it_is_loaded_as_the_command_does(client, olga):
    assert load(client, OPENAI).status_code == 302
    assert JudgeVersion.objects.get(name="one").api_key_env == "OPENAI_API_KEY"
    assert Panel.objects.get(is_default=True).ensemble == ["one"]
    entry = AuditEntry.objects.get(act="judges.configured")
    assert entry.details["judges"] == ["one"]
    response = page(client)
    (row,) = response.context["models"]
    assert row["judge"].name == "one" and row["votes"] and not row["debates"]
    assert "openai, gpt-4o-mini" in response.content.decode()


def test_a_mistake_is_shown_with_its_line_and_nothing_is_half_written(client, olga):
    text = OPENAI + '[[judge]]\nname = "two"\nprovider = "openai"\nmodel = "m"\ntemprature = 1\n'
    response = load(client, text)
    assert response.status_code == 422 and configured() == set()
    (error,) = response.context["file_form"].non_field_errors()
    assert "judges.toml, line 9" in error and "temprature is unknown" in error
    assert response.context["file_form"]["text"].value() == text, "what was typed stays"
    response = load(client, "nothing", file=SimpleUploadedFile("panel.toml", (OPENAI + "x = 1\n").encode()))
    assert response.status_code == 422 and "panel.toml, line 5" in response.text
    assert response.context["file_form"]["text"].value() == OPENAI + "x = 1\n", "a file takes the place of the text"
    assert load(client, "", file=SimpleUploadedFile("x.toml", b"\xff\xfe")).status_code == 422
    assert load(client, "", file=SimpleUploadedFile("panel.toml", OPENAI.encode())).status_code == 302
    assert configured() == {"one"}


def add(client, **options):
    return client.post("/c/books/models/add/", {"provider": "openai", "model": "gpt-4o-mini", **options})


def change(client, name, **options):
    """Send the form of a model with these fields changed."""
    address = f"/c/books/models/{JudgeVersion.objects.get(name=name, is_current=True).pk}/"
    page = client.get(address)
    form, text = page.context["form"], page.content.decode()
    assert all(f'name="{field.name}"' in text for field in form), "what the page does not show would be reset"
    fields = {field.name: field.value() for field in form if field.value() not in (None, "")}
    return client.post(address, {**fields, **options})


def control(client, name, act):
    judge = JudgeVersion.objects.filter(name=name).latest("version")
    return client.post(f"/c/books/models/{judge.pk}/{act}/", follow=True)


def last_message(response):
    return list(response.context["messages"])[-1].message


def test_a_model_is_added_to_those_that_are_configured_and_the_panel_stays(client, olga):
    load(client, OPENAI)
    model = {"provider": "openai-compatible", "model": "org/llama 3", "base_url": "http://127.0.0.1:9/v1"}
    prices = {"input_price": "1", "output_price": "2", "more": "family = 'llama'", "requests_per_minute": "60"}
    response = add(client, **model, api_key_env=VARIABLE, **prices)
    assert response.status_code == 302, response.context["add_form"].errors
    made = JudgeVersion.objects.get(name="llama-3")
    assert (made.model, made.base_url, made.api_key_env) == ("org/llama 3", "http://127.0.0.1:9/v1", VARIABLE)
    assert (made.input_price, made.requests_per_minute, made.parameters["family"]) == (1.0, 60, "llama")
    assert Panel.objects.get(is_default=True).ensemble == ["one"]
    response = add(client, provider="azure", model="m")
    assert response.status_code == 422 and response.context["add_form"]["model"].value() == "m"
    response = add(client, model="another", name="one")
    assert list(response.context["add_form"].errors) == ["name"]


def test_a_header_of_a_model_is_in_no_entry_of_the_audit_log(client, olga):
    add(client, name="one", more='extra_headers = { "x-gateway" = "opens-it" }')
    assert JudgeVersion.objects.get(name="one").parameters["extra_headers"] == {"x-gateway": "opens-it"}
    (details,) = AuditEntry.objects.filter(act="judge.added").values_list("details", flat=True)
    assert details["more"] == 44 and "opens-it" not in str(details)


def test_an_edit_makes_a_new_version_and_the_old_one_stays_as_it_was(client, olga):
    add(client, name="one", more="temperature = 0.5")
    before = JudgeVersion.objects.get(name="one")
    assert change(client, "one", max_concurrency="3").status_code == 302
    before.refresh_from_db()
    after = JudgeVersion.objects.get(name="one", is_current=True)
    assert (before.is_current, before.max_concurrency, after.version, after.max_concurrency) == (False, None, 2, 3)
    assert after.parameters == before.parameters and Panel.objects.get(is_default=True).ensemble == ["one"]
    change(client, "one")
    assert JudgeVersion.objects.filter(name="one").count() == 2, "nothing was changed"
    assert AuditEntry.objects.filter(act="judge.changed").count() == 1
    response = change(client, "one", max_concurrency="0")
    assert response.status_code == 422 and list(response.context["form"].errors) == ["max_concurrency"]


def test_a_model_that_is_used_is_not_deleted_and_the_reason_is_said(client, olga, books):
    for name in ("one", "two", "three"):
        add(client, name=name, more=f"family = '{name}'")
    judges = {judge.name: judge for judge in JudgeVersion.objects.exclude(provider="offline")}
    client.post("/c/books/models/panel/", {"judge": ["one", "two", "three"]})
    assert "The panel of books uses it" in last_message(control(client, "one", "delete"))
    client.post("/c/books/models/panel/", {"judge": ["three"]})
    fields = {"collection": books, "policy": "single", "panel": "main"}
    campaign = Campaign.objects.create(state="paused", voters=[judges["two"].pk], **fields)
    assert "Campaign 1 of books uses it" in last_message(control(client, "two", "delete"))
    for place in ({"adjudicator": judges["two"].pk}, {"filter": [judges["two"].pk]}):
        Campaign.objects.filter(pk=campaign.pk).update(voters=[], protocol=place)
        assert "Campaign 1 of books uses it" in last_message(control(client, "two", "delete")), place
    assert configured() == {"one", "two", "three"}
    Campaign.objects.filter(pk=campaign.pk).update(state="finished")
    control(client, "two", "delete")
    assert not JudgeVersion.objects.filter(name="two", is_current=True).exists()


def test_a_deleted_model_keeps_its_answers_and_is_restored(client, olga):
    add(client, name="one")
    judge = JudgeVersion.objects.get(name="one")
    JudgeProbe.objects.create(judge=judge, passes=True, found={})
    response = control(client, "one", "delete")
    assert response.context["models"] == [] and list(response.context["deleted"]) == [judge]
    assert Panel.objects.get(is_default=True).name == "offline" and JudgeProbe.objects.get().judge == judge
    response = control(client, "one", "restore")
    assert [row["judge"] for row in response.context["models"]] == [judge] and not response.context["deleted"]
    assert Panel.objects.get(is_default=True).ensemble == ["one"]
    acts = AuditEntry.objects.filter(act__startswith="judge.").order_by("pk").values_list("act", flat=True)
    assert list(acts) == ["judge.added", "judge.deleted", "judge.restored"]


def test_the_text_that_is_shown_changes_nothing_when_it_is_loaded(books):
    store_judges_file(parse((Path(ROOT) / "docs/judges-example.toml").read_text()))
    for _ in range(2):
        text = write_judges_text(Panel.objects.get(is_default=True))
        done = store_judges_file(parse(text))
        assert {row["change"] for row in done["judges"]} == {"unchanged"} and done["panel"]["change"] == "unchanged"
    assert tomllib.loads(text)["panel"]["name"]


def test_what_is_wrong_with_a_new_model_is_said_at_its_field(client, olga):
    own = {"provider": "openai-compatible"}
    evil = {**own, "base_url": "https://evil.example/v1"}
    for options, field in (
        ({"base_url": "https://evil.example/v1"}, "api_key_env"),
        ({**evil, "api_key_env": "OPENAI_API_KEY"}, "api_key_env"),
        ({**own, "base_url": "http://127.0.0.1:9/v1", "api_key_env": "SECRET"}, "api_key_env"),
        ({**evil, "base_url": "file:///etc/passwd"}, "base_url"),
        ({"more": 'token_command = ["id"]'}, "more"),
        ({"more": "temprature = 1"}, "more"),
        ({"more": "model = 'other'"}, "more"),
        ({"model": ""}, "model"),
        ({"input_price": "1"}, "input_price"),
        (own, "base_url"),
    ):
        response = add(client, **options)
        assert response.status_code == 422 and list(response.context["add_form"].errors) == [field], options
    assert configured() == set()
    (sentence,) = response.context["add_form"].errors["base_url"]
    assert sentence == "Enter the base URL, for example http://127.0.0.1:8001/v1."


def test_a_file_from_a_browser_runs_no_command_and_sends_no_key_elsewhere(client, olga):
    own, azure = 'provider = "openai-compatible"\nbase_url = ', 'provider = "azure"\napi_version = "1"\nbase_url = '
    for keys in (
        azure + '"https://x.openai.azure.com"\ntoken_command = ["id"]',
        azure + '"https://evil.example"',
        own + '"https://evil.example/v1"\napi_key_env = "SECRET_KEY"',
        own + '"https://evil.example/v1"\napi_key_env = "OPENAI_API_KEY"',
        own + '"file:///etc/passwd"',
        own + '"ftp://evil.example/"',
        'provider = "openai"\nbase_url = "https://evil.example/v1"',
    ):
        response = load(client, f'[[judge]]\nname = "bad"\nmodel = "m"\n{keys}\n')
        assert response.status_code == 422 and response.context["file_form"].non_field_errors(), keys
    assert configured() == set()


def test_what_the_command_loaded_may_stand_in_the_text(client, olga):
    text = '[[judge]]\nname = "own"\nmodel = "m"\nprovider = "openai"\nbase_url = "https://proxy.example/v1"\n'
    store_judges_file(parse(text))
    assert load(client, page(client).context["file_form"]["text"].value()).status_code == 302


def test_each_model_says_whether_its_key_is_set_and_no_page_shows_the_key(client, olga, monkeypatch):
    text = f'[[judge]]\nname = "one"\nprovider = "openai-compatible"\nmodel = "m"\napi_key_env = "{VARIABLE}"\n'
    load(client, text + 'base_url = "http://127.0.0.1:9/v1"\n')
    monkeypatch.delenv(VARIABLE, raising=False)
    (row,) = page(client).context["models"]
    assert (row["has_key"], row["needs_key"]) == (False, True)
    monkeypatch.setenv(VARIABLE, SECRET)
    response = page(client)
    assert response.context["models"][0]["has_key"]
    assert VARIABLE in response.content.decode() and SECRET not in response.content.decode()


@pytest.fixture
def local(client, olga, model_server: LocalModels, monkeypatch):
    """A model of the local server, added in the form."""
    monkeypatch.setenv(VARIABLE, KEY)
    model = {"provider": "openai-compatible", "model": "yes", "base_url": model_server.openai, "api_key_env": VARIABLE}
    assert add(client, **model, input_price="1", output_price="2").status_code == 302
    return model_server


def test_a_model_is_tested_with_one_or_two_calls_and_its_price_is_shown(client, local, monkeypatch):
    def test(key="yes"):
        response = client.post("/c/books/models/test/", {"judge": key}, follow=True)
        return response, last_message(response)

    response, message = test()
    probe = JudgeProbe.objects.get()
    assert probe.passes and 1 <= len(local.requests()) == probe.calls <= 2 and probe.cost and probe.cost > 0
    (row,) = response.context["models"]
    assert row["probe"] == probe and row["most_cost"] >= probe.cost
    assert "yes works (" in message and KEY not in response.text
    assert AuditEntry.objects.filter(act="judge.tested").count() == 1
    calls = len(local.requests())
    monkeypatch.delenv(VARIABLE)
    response, message = test()
    probe = JudgeProbe.objects.latest("pk")
    assert not probe.passes and probe.calls == 0 and len(local.requests()) == calls
    assert VARIABLE in message and "restart" in message
    assert "0 calls" not in response.text and "1 call, $0" not in response.text
    monkeypatch.setenv(VARIABLE, KEY)
    local.script({"yes": {"fault": "echo-key"}})
    response, message = test()
    assert VARIABLE in message and not JudgeProbe.objects.latest("pk").passes
    assert KEY not in response.text + str(list(JudgeProbe.objects.values())), "a server repeats the key"
    monkeypatch.setattr("annotation.home.judge_setup.views.TEST_SECONDS", 0.3)
    local.script({"yes": {"fault": "hang"}})
    assert "0.3" in test()[1] and JudgeProbe.objects.count() == 3, "it is given up after a while"


def test_a_search_service_is_said_to_search_and_to_cost_so_much_a_call(client, olga):
    priced = {"name": "web", "provider": "tavily", "api_key_env": VARIABLE, "parameters": {"call_price": 0.008}}
    web = JudgeVersion.objects.create(model="search", **priced)
    JudgeVersion.objects.create(name="other", provider="exa", model="search", api_key_env=VARIABLE)
    text = " ".join(page(client).content.decode().split())
    assert text.count('<a href="/c/books/import/web/">searches the web</a>') == 2
    assert "$0.008 for each call" in text and "call_price" in text
    assert "0.0 in" not in text and "Test<span" in text
    prices = " ".join(client.get("/c/books/prices/").content.decode().split())
    assert "Each call: $0.008" in prices and ">judges file</td>" in prices
    assert f"/c/books/prices/{web.pk}/" not in prices and client.get(f"/c/books/prices/{web.pk}/").status_code == 404


def test_built_in_and_unknown_judges_are_not_tested(client, charlie):
    for name in ("offline-bm25", "nobody", ""):
        assert client.post("/c/books/models/test/", {"judge": name}).status_code == 404
    assert client.get("/c/books/models/test/").status_code == 405


def test_what_a_test_found_stands_in_the_row(client, olga):
    load(client, OPENAI)
    found = {
        "schema_modes": {"json_schema": "refused", "json_object": "works"}, "logprobs": 5, "temperature": 0.0,
        "temperature_taken": True, "thinks": True, "reasoning_tokens": 120, "reasoning_text": True, "context": 8192,
        "usage": ["prompt_tokens"],
    }  # fmt: skip
    judge = JudgeVersion.objects.get(name="one")
    JudgeProbe.objects.create(judge=judge, passes=False, problem="Set schema_mode", found=found, warnings=["A note"])
    text = page(client).content.decode()
    for words in ("<del>json_schema</del>", "5 alternatives", "120 tokens", "8,192", "A note.", "Set schema_mode."):
        assert words in text


def test_the_page_takes_few_statements_however_many_models(client, olga, django_assert_max_num_queries):
    for number in range(30):
        JudgeVersion.objects.create(name=f"j{number}", provider="openai", model="m")
    page(client)
    with django_assert_max_num_queries(21):
        page(client)


def test_an_admin_chooses_debaters_and_panel_of_the_collection_and_loads_no_file(client, charlie):
    assert "file_form" not in page(client).context
    for name in ("a", "b", "c"):
        JudgeVersion.objects.create(name=name, provider="openai", model=name)
    panel = {"debate_for": "a", "debate_against": "b", "judge": ["a", "b", "c"]}
    assert client.post("/c/books/models/panel/", panel).status_code == 302
    made = Panel.objects.get(name="books:chosen")
    assert (made.debate, made.ensemble, made.majority, made.is_default) == (["a", "b"], ["a", "b", "c"], 2, False)
    assert AuditEntry.objects.get(act="panel.used").details["judges"] == ["a", "b", "c"]
    assert client.post("/c/books/models/panel/", {"judge": ["a"]}).status_code == 302
    made.refresh_from_db()
    assert (made.debate, made.ensemble) == ([], ["a"])


def test_a_panel_that_cannot_be_keeps_what_was_chosen(client, charlie):
    for name in ("a", "b"):
        JudgeVersion.objects.create(name=name, provider="openai", model=name)
    for panel in (
        {"judge": ["a", "b"]},
        {"judge": []},
        {"judge": ["a"], "debate_for": "a"},
        {"judge": ["a"], "debate_for": "offline-bm25", "debate_against": "a"},
        {"judge": ["nobody"]},
    ):
        response = client.post("/c/books/models/panel/", panel)
        assert response.status_code == 422 and response.context["members"].errors, panel
        assert list(response.context["members"]["judge"].value()) == panel["judge"]
    assert not Panel.objects.filter(name="books:chosen").exists()
