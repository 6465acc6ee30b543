"""The summary counts what people must know: truncated, refused and unusable answers by judge, with what helps."""

from io import StringIO

import pytest
from django.core.management import call_command
from django.test import Client
from django.urls import reverse

from annotation.models import Role
from corpus.models import Collection
from tests.engine_parts import collection_of, judge, make_panel
from tests.factories import make_member
from tests.modelserver.fixtures import LocalModels


def test_a_judge_whose_answers_are_lost_is_said_with_the_key_that_helps(
    worker: object, model_server: LocalModels, client: Client
) -> None:
    collection_of(6)
    make_panel(model_server, debate=(), votes=("yes", "truncated", "refused", "garbage", "yes2"))
    model_server.script({"yes2": {"verdict": "yes"}})
    done = judge(check=True)
    reports = {report["judge"]: report for report in done.json["judges"]}
    assert (reports["v1"]["calls"], reports["v1"]["usable"]) == (6, 6)
    assert (reports["v2"]["truncated"], reports["v2"]["usable"]) == (6, 0)
    assert (reports["v3"]["refused"], reports["v3"]["usable"]) == (6, 0)
    assert (reports["v4"]["unusable"], reports["v4"]["calls"]) == (12, 12), "each was asked for once more"
    for words in (
        "v2: 6 calls, 0 usable; 6 truncated: raise max_output_tokens, now 512",
        "v3: 6 calls, 0 usable; 6 refused",
        "v4: 12 calls, 0 usable; 12 not in the form that was asked for",
    ):
        assert any(note.startswith(words) for note in done.json["judge_notes"]), done.json["judge_notes"]
    assert not any(note.startswith(("v1", "v5")) for note in done.json["judge_notes"])
    out = StringIO()
    call_command("status", "books", stdout=out)
    assert "v2: 6 calls, 0 usable; 6 truncated: raise max_output_tokens" in out.getvalue()
    client.force_login(make_member(Collection.objects.get(), "alice", Role.ADMIN).user)
    page = client.get(reverse("campaigns", args=["books"])).content.decode()
    assert "v2: 6 calls, 0 usable; 6 truncated: raise max_output_tokens, now 512" in page


@pytest.mark.parametrize("model", ["yes"])
def test_a_campaign_without_losses_says_nothing(worker: object, model_server: LocalModels, model: str) -> None:
    collection_of(2)
    make_panel(model_server, debate=(), votes=(model,))
    done = judge("--policy", "single", check=True)
    assert done.json["judge_notes"] == [] and done.json["judges"][0]["usable"] == 2
