"""check_judges at llama.cpp: what it finds out about a small model, by calls whose tokens are the server's own."""

import pytest

from judges.models.probes import JudgeProbe
from tests.models.judging import configure

pytestmark = pytest.mark.django_db(transaction=True)
MODES = ("json_schema", "json_object", "text")


def test_each_mode_is_checked_with_the_tokens_that_the_server_counts(llama_server, manage):
    configure(llama_server, {mode: {"schema_mode": mode, "logprobs": 5, "max_output_tokens": 128} for mode in MODES})
    done = manage("check_judges", "--judge", *MODES, "--json", check=False)
    checks = {check["name"]: check for check in done.json["judges"]}
    assert done.code == (0 if all(check["ok"] for check in checks.values()) else 3), done.err
    for name, check in checks.items():
        usages = llama_server.usages(name)
        assert 1 <= check["calls"] == len(usages) <= 2
        assert check["tokens"] == {
            "in": sum(usage["prompt_tokens"] for usage in usages),
            "out": sum(usage["completion_tokens"] for usage in usages),
        }
        assert check["ok"] != bool(check["problem"]), "a judge works, or it is said why not"
        assert check["found"]["context"] == 2048 and any("2,048 tokens" in line for line in check["warnings"])
        assert check["cost"] == 0
    assert checks["json_schema"]["ok"], checks["json_schema"]["problem"]
    assert checks["json_schema"]["found"]["logprobs"] == 5
    assert JudgeProbe.objects.count() == len(MODES)
