"""The price table: `[[price]]` in the judges file, rows of the page, and which price holds (issue 12, item 6)."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from django.db import DatabaseError, transaction
from django.test import Client
from django.urls import reverse

from annotation.models import AuditEntry, Role
from corpus.errors import BadInput
from corpus.models import Collection
from judges.campaigns.configurations import build_configuration as configured
from judges.campaigns.lifecycle import check_budget
from judges.costs.judge_records import judge_of
from judges.costs.price_rows import enter_price
from judges.costs.prices import FREE, Price, describe_price_source, price_for_judge
from judges.models import Attempt, Campaign, JudgeVersion, Panel
from judges.models.prices import PriceRow
from judges.panels import configuration
from judges.panels.judges_file import parse
from judges.presets import PRESETS
from judges.records import Judge
from tests.called import call
from tests.factories import make_member
from tests.money_scene import judged_books

JUDGES = "".join(
    f'[[judge]]\nname = "{name}"\nprovider = "openai-compatible"\nmodel = "m-{name}"\n'
    'base_url = "http://127.0.0.1:1/v1"\n\n'
    for name in "abcde"
)
FILE = JUDGES + '[panel]\ndebate = ["a", "b"]\nensemble = ["a", "b", "c", "d", "e"]\n'
TABLE = """
[[price]]
provider = "openai-compatible"
model = "m-*"
input_price = 1
output_price = 4
written_input_price = 1.25
reasoning_price = 6

[[price]]
provider = "openai-compatible"
model = "m-b"
input_price = 0
output_price = 0
"""


def held(name: str) -> Judge:
    return judge_of(JudgeVersion.objects.get(name=name, is_current=True))


@pytest.mark.django_db
def test_a_table_prices_every_judge_that_asks_the_model_and_the_most_exact_row_holds(tmp_path: Path) -> None:
    file = tmp_path / "judges.toml"
    file.write_text(FILE + TABLE)
    document = call("configure_judges", str(file), "--json").json
    assert [(one["model"], one["change"]) for one in document["prices"]] == [("m-*", "new"), ("m-b", "new")]
    assert price_for_judge(held("a")) == Price(1.0, 1.0, 4.0, 1.25, 6.0)
    assert held("a").priced_by == "table" and describe_price_source(held("a")).startswith("price table")
    assert price_for_judge(held("b")) == FREE
    assert describe_price_source(held("b")).startswith("free ")
    again = configuration.store_judges_file(parse(FILE + TABLE))
    assert {one["change"] for one in again["prices"]} == {"unchanged"} and PriceRow.objects.count() == 2
    assert {one["change"] for one in again["judges"]} == {"unchanged"}, "a price makes no new version of a judge"
    changed = configuration.store_judges_file(parse(FILE + TABLE.replace("input_price = 1\n", "input_price = 2\n")))
    assert changed["prices"][0]["change"] == "changed" and price_for_judge(held("a")) == Price(2.0, 2.0, 4.0, 1.25, 6.0)
    assert "prices" not in configuration.store_judges_file(parse(FILE)), "a file without prices says nothing of them"
    assert price_for_judge(held("a")) == Price(2.0, 2.0, 4.0, 1.25, 6.0), "and takes none away"


@pytest.mark.django_db
def test_a_judges_own_price_comes_before_the_table_and_a_later_word_on_the_page_before_both() -> None:
    own = FILE.replace('model = "m-a"', 'model = "m-a"\ninput_price = 7\noutput_price = 8')
    configuration.store_judges_file(parse(own + TABLE))
    assert price_for_judge(held("a")) == Price(7.0, 7.0, 8.0) and describe_price_source(held("a")) == "judges file"
    said = {"provider": "openai-compatible", "base_url": "http://127.0.0.1:1/v1", "model": "m-a", "source": "page"}
    assert enter_price(prices={"input_price": 5.0, "output_price": 6.0}, **said) == "new"
    assert price_for_judge(held("a")) == Price(5.0, 5.0, 6.0)
    assert held("a").priced_by == "page" and describe_price_source(held("a")).endswith("Prices page")
    assert enter_price(prices={}, **said) == "changed"
    assert price_for_judge(held("a")) == Price(7.0, 7.0, 8.0), "taken away: the judges file counts again"
    enter_price(prices={"input_price": 5.0, "output_price": 6.0}, **said)
    configuration.store_judges_file(parse(own.replace("input_price = 7", "input_price = 9")))
    assert price_for_judge(held("a")) == Price(9.0, 9.0, 8.0), "the file spoke last: a new version of the judge"


@pytest.mark.django_db
def test_taken_away_from_the_page_what_the_file_said_counts_again() -> None:
    table = '[[price]]\nprovider = "openai-compatible"\nmodel = "m-a"\ninput_price = 1\noutput_price = 2\n'
    table += 'base_url = "http://127.0.0.1:1/v1"\n'
    configuration.store_judges_file(parse(FILE + table))
    said = {"provider": "openai-compatible", "base_url": "http://127.0.0.1:1/v1", "model": "m-a", "source": "page"}
    enter_price(prices={"input_price": 3.0, "output_price": 4.0}, **said)
    assert price_for_judge(held("a")) == Price(3.0, 3.0, 4.0)
    assert enter_price(prices={}, **said) == "changed"
    assert price_for_judge(held("a")) == Price(1.0, 1.0, 2.0)
    assert configuration.store_judges_file(parse(FILE + table))["prices"][0]["change"] == "unchanged"
    assert price_for_judge(held("a")) == Price(1.0, 1.0, 2.0) and PriceRow.objects.count() == 3
    assert enter_price(prices={}, **said) == "changed" and price_for_judge(held("a")) is None, "the file's too"
    assert enter_price(prices={}, **said) == "unchanged" and price_for_judge(held("a")) is None


def price(**keys: object) -> str:
    """A [[price]] of model m, which costs 1 and 1 unless told otherwise."""
    values = {"model": "m", "input_price": 1, "output_price": 1, **keys}
    return "\n".join(["[[price]]", *(f"{key} = {json.dumps(value)}" for key, value in values.items())])


@pytest.mark.parametrize(
    ("table", "told"),
    [
        ("price = 3", "price is not a list of tables: write each price as [[price]]"),
        (price(), "[[price]] 1 provider is missing"),
        (price(provider="nobody"), '[[price]] 1 provider "nobody" is none that has prices'),
        (price(input_price=-1, provider="openai"), "line 37: [[price]] 1 input_price must be a number from 0 to 1e+06"),
        (price(provider="openai", model="m*x"), "1 model must have 200 characters at most, and * only at its end"),
        (
            price(provider="openai", batch_input_price=1),
            "[[price]] 1 batch_input_price needs batch_output_price beside it, or leave both out",
        ),
    ],
)
def test_a_wrong_table_is_one_line(table: str, told: str) -> None:
    text = f"{table}\n{FILE}" if table.startswith("price") else f"{FILE}\n{table}\n"
    with pytest.raises(BadInput) as error:
        parse(text)
    assert told in str(error.value), str(error.value)


def test_batch_written_and_reasoning_prices_are_taken_and_what_a_batch_costs() -> None:
    keys = "input_price = 2\noutput_price = 8\nwritten_input_price = 2.5\nreasoning_price = 9\n"
    keys += "batch_input_price = 1\nbatch_output_price = 4\nbatch_cached_input_price = 0.2"
    (entry, *_) = parse(FILE.replace('model = "m-a"', f'model = "m-a"\n{keys}')).judges
    known = (entry.written_input_price, entry.reasoning_price, entry.batch_input_price, entry.batch_cached_input_price)
    assert known == (2.5, 9.0, 1.0, 0.2)
    with pytest.raises(BadInput, match="reasoning_price needs input_price"):
        parse(FILE.replace('model = "m-a"', 'model = "m-a"\nreasoning_price = 9'))
    # Where nothing is said: half. Said: as said, and what is left out has the share of other input or output.
    one = Judge(
        "j", "openai", "m", id=1, input_price=2.0, output_price=8.0, cached_input_price=0.4, reasoning_price=6.0
    )
    assert price_for_judge(one, batch=True) == Price(1.0, 0.2, 4.0, None, 3.0)
    told = Judge("j", "openai", "m", id=1, input_price=2.0, output_price=8.0, cached_input_price=0.4,
                 written_input_price=2.5, batch_input_price=0.5, batch_output_price=6.0)  # fmt: skip
    assert price_for_judge(told, batch=True) == Price(0.5, 0.1, 6.0, 0.625, None)
    assert price_for_judge(told) == Price(2.0, 0.4, 8.0, 2.5, None)
    elsewhere = Judge("j", "openai-compatible", "m", id=1, input_price=2.0, output_price=8.0)
    assert price_for_judge(elsewhere, batch=True) == price_for_judge(elsewhere), "no batch endpoint: asked one by one"


@pytest.mark.parametrize(
    ("provider", "model", "base_url"),
    [
        ("openai", "gpt-4o-mini", ""),
        ("bedrock", "us.anthropic.claude-haiku-4-5-20251001-v1:0", ""),
        ("vertex", "gemini-2.5-flash", ""),
        ("xai", "grok-4", ""),
        ("fireworks", "accounts/fireworks/models/deepseek-v4-pro", ""),
        ("openrouter", "openai/gpt-4o-mini", ""),
        ("azure", "gpt-4o-mini", "https://team.openai.azure.com"),
        ("bedrock", "us.anthropic.claude-haiku-4-5-20251001-v1:0", "https://bedrock-runtime.us-east-1.amazonaws.com"),
        ("vertex", "gemini-2.5-flash", "https://us-central1-aiplatform.googleapis.com"),
        ("vertex-anthropic", "claude-haiku-4-5", "https://us-east5-aiplatform.googleapis.com"),
    ],
)
def test_the_list_knows_presets_and_addresses_that_have_list_prices(provider, model, base_url):
    judge = Judge("j", provider, model, base_url, id=1)
    known = price_for_judge(judge)
    assert known is not None and known.input > 0 and known.output > 0
    assert describe_price_source(judge).startswith("genai-prices ")
    assert price_for_judge(replace(judge, base_url="http://127.0.0.1:1")) is None, "elsewhere it has its own prices"
    assert price_for_judge(replace(judge, model="our-deployment")) is None


@pytest.mark.parametrize("provider", [name for name, one in PRESETS.items() if one.local])
def test_no_model_of_a_server_of_ones_own_is_looked_up(provider: str) -> None:
    for base_url in ("", PRESETS[provider].base_url):
        assert price_for_judge(Judge("j", provider, "gpt-4o-mini", base_url, id=1)) is None
    assert price_for_judge(Judge("j", provider, "gpt-4o-mini", id=1, input_price=0.0, output_price=0.0)) == FREE


def test_the_list_has_prices_of_batches_and_of_tiers() -> None:
    mini = Judge("j", "openai", "gpt-4o-mini", id=1)
    assert price_for_judge(mini, batch=True) == Price(0.075, 0.075, 0.3), "cached input is not halved twice"
    dear = price_for_judge(Judge("j", "openai", "gpt-4o-mini", id=1, parameters={"service_tier": "priority"}))
    assert dear is not None and dear.input > 0.15
    assert price_for_judge(Judge("j", "openai", "gpt-4o-mini", id=1, parameters={"service_tier": "unheard-of"})) is None
    deep = price_for_judge(Judge("j", "openai-compatible", "sonar-deep-research", "https://api.perplexity.ai", id=1))
    assert deep == Price(2.0, 2.0, 8.0, None, 3.0), "reasoning has a price of its own"


@pytest.mark.django_db
def test_a_local_server_is_free_only_when_that_was_said_and_rows_are_never_altered() -> None:
    configuration.store_judges_file(parse(FILE))
    assert price_for_judge(held("a")) is None and describe_price_source(held("a")) == "unknown"
    free = FILE.replace("base_url", "input_price = 0\noutput_price = 0\nbase_url")
    configuration.store_judges_file(parse(free))
    assert price_for_judge(held("a")) == FREE and describe_price_source(held("a")) == "free (set by you): judges file"
    enter_price(provider="openai", model="m", prices={"input_price": 1.0, "output_price": 1.0}, source="page")
    for act in (lambda: PriceRow.objects.update(input_price=0.0), lambda: PriceRow.objects.all().delete()):
        with pytest.raises(DatabaseError), transaction.atomic():
            act()
    assert PriceRow.objects.get().input_price == 1.0


@pytest.fixture
def books(db: object) -> Collection:
    """Judge one says its price in the judges file, judge two has none."""
    return judged_books()


@pytest.fixture
def charlie(books: Collection, client: Client) -> Client:
    client.force_login(make_member(books, "charlie", Role.ADMIN).user)
    return client


def test_the_page_says_each_price_and_a_wrong_one_and_keeps_the_form(books: Collection, charlie: Client) -> None:
    JudgeVersion.objects.create(name="listed", provider="openai", model="gpt-4o-mini")
    JudgeVersion.objects.create(name="local", provider="openai-compatible", model="l", input_price=0, output_price=0)
    page = charlie.get(reverse("prices", args=["books"])).text
    for words in ("judges file", "unknown", "genai-prices 0.", "$0.15", "Batch input: $0.075", "free (set by you)"):
        assert words in page, words
    address = reverse("price", args=["books", JudgeVersion.objects.get(name="two").pk])
    for given, told in (
        ({"input_price": "-1", "output_price": "2.25"}, "greater than or equal to 0"),
        ({"input_price": "1", "output_price": ""}, "required"),
        ({"input_price": "1", "output_price": "2.25", "batch_input_price": "1"}, "Enter both batch prices"),
    ):
        wrong = charlie.post(address, {**given, "confirm": "1"})
        assert wrong.status_code == 422 and told in wrong.text, told
    assert "2.25" in wrong.text and not PriceRow.objects.exists()
    nothing = charlie.post(address, {"away": "1", "confirm": "1"}, follow=True).text
    assert "m-two has no entered price" in nothing


def test_an_admin_enters_a_price_after_a_question_and_what_was_booked_stays(books: Collection, charlie: Client) -> None:
    two = JudgeVersion.objects.get(name="two")
    JudgeVersion.objects.create(name="twin", provider=two.provider, model=two.model)
    address = reverse("price", args=["books", two.pk])
    booked = list(Attempt.objects.order_by("pk").values_list("pk", "cost"))
    ledger = charlie.get(reverse("ledger_csv", args=["books", Campaign.objects.get().number])).content
    given = {"input_price": "0.5", "output_price": "2", "reasoning_price": "3", "note": "invoice of May"}
    asked = charlie.post(address, given).text
    assert "$0.5" in asked and "twin" in asked and not PriceRow.objects.exists()
    assert charlie.post(address, {**given, "confirm": "1"}).status_code == 302
    assert price_for_judge(held("two")) == Price(0.5, 0.5, 2.0, None, 3.0) == price_for_judge(held("twin"))
    noted = AuditEntry.objects.get(act="price.changed").details["prices"]
    assert noted == ["input_price 0.5", "output_price 2", "reasoning_price 3"]
    assert "invoice of May" in charlie.get(address).text
    assert charlie.post(address, {**given, "input_price": "0.7", "confirm": "1"}).status_code == 302
    page = charlie.get(address).text
    assert "Input $0.5," in page and "Input $0.7," in page, "the earlier price stays in the history"
    assert list(Attempt.objects.order_by("pk").values_list("pk", "cost")) == booked
    assert charlie.get(reverse("ledger_csv", args=["books", Campaign.objects.get().number])).content == ledger
    assert charlie.post(address, {"away": "1", "confirm": "1"}).status_code == 302
    assert price_for_judge(held("two")) is None and PriceRow.objects.count() == 3


def test_the_page_says_what_counts_once_its_price_is_away(books: Collection, charlie: Client) -> None:
    two = JudgeVersion.objects.get(name="two")
    address = reverse("price", args=["books", two.pk])
    key = {"provider": two.provider, "base_url": two.base_url, "model": two.model}
    for usd, source, told in ((1.25, "file", "comes from the judges file."), (3.0, "page", "judges file applies then")):
        enter_price(prices={"input_price": usd, "output_price": 2.0}, source=source, **key)
        assert told in charlie.get(address).text
    asked = charlie.post(address, {"away": "1"}).text
    assert "$1.25" in asked and "(currently $3)" in asked


def test_a_campaign_that_had_no_price_can_have_a_budget_once_it_was_entered(books: Collection) -> None:
    Panel.objects.create(name="unpriced", ensemble=["two"], majority=1)
    wanted = configured(panel="unpriced", policy="single")
    with pytest.raises(BadInput, match="two has none"):
        check_budget(books, wanted, 1.0, None, None)
    enter_price(
        provider="openai-compatible", model="m-two", prices={"input_price": 1.0, "output_price": 1.0}, source="page"
    )
    again = configured(panel="unpriced", policy="single")
    check_budget(books, again, 1.0, None, None)
    assert again.values == wanted.values, "the same campaign: a price makes no other judge"
    assert json.dumps(again.values) == json.dumps(wanted.values)
