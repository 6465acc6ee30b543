"""A real collection through the whole engine: Cranfield, judged by the offline panel."""

import pytest

from config.env import ROOT
from tests.conftest import Manage
from tests.engine_parts import sums_up

CRANFIELD = ROOT.parent / "shared" / "data" / "cranfield"


@pytest.mark.weekly
@pytest.mark.skipif(not CRANFIELD.is_dir(), reason="1 test not run: Cranfield is not on this machine")
def test_cranfield_is_judged_completely_and_its_sums_add_up(manage: Manage) -> None:
    files = {"corpus": "cran.all.1400.xml", "queries": "cran.qry.xml", "qrels": "cranqrel.trec.txt"}
    options = [part for name, file in files.items() for part in (f"--{name}", CRANFIELD / file)]
    manage("import_collection", "cranfield", *options, "--query-ids", "position", "--empty", "keep")
    done = manage("judge", "cranfield", "--policy", "debate+ensemble", "--wait", "--json", check=False, timeout=540)
    assert done.code == 0, done.err
    status = done.json
    assert status["state"] == "finished" and status["pairs"] == 1837
    assert sums_up(status) and status["pending"] == status["running"] == status["failed"] == 0
    assert sum(status["labels"].values()) == status["labelled"]
    assert sum(status["escalations"].values()) - status["audits"] == status["escalated"]
    assert status["escalations"]["audit"] == status["audits"] > 0
    assert manage("status", "cranfield", "--json").json == status
    assert "nothing to do" in manage("judge", "cranfield", "--policy", "debate+ensemble", "--wait").out
