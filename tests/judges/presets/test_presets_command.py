"""`presets` as the shell sees it: every provider in one table, and each with the block to paste."""

import pytest

from judges.panels import judges_file
from judges.presets import PRESETS
from tests.called import call


def test_every_provider_stands_in_the_table_and_an_unknown_one_is_exit_2() -> None:
    heading, *rows = call("presets").out.splitlines()
    assert heading.split()[0] == "provider"
    assert [row.split()[0] for row in rows] == list(PRESETS)
    (openai,) = [row for row in rows if row.startswith("openai ")]
    for word in ("json_schema", "up to 20", "OPENAI_API_KEY", "https://api.openai.com/v1"):
        assert word in openai
    (anthropic,) = [row for row in call("presets", "--json").json["presets"] if row["name"] == "anthropic"]
    assert anthropic["schema_modes"] == list(PRESETS["anthropic"].schema_modes)
    assert anthropic["key_env"] == "ANTHROPIC_API_KEY"
    done = call("presets", "nobody")
    assert (done.code, done.out) == (2, "") and "nobody" in done.err and "openai, " in done.err


@pytest.mark.parametrize("name", PRESETS)
def test_its_block_is_one_that_a_judges_file_takes(name: str) -> None:
    done, block = call("presets", name), call("presets", name, "--json").json["block"]
    assert done.code == 0 and done.out.startswith(PRESETS[name].title) and block in done.out
    # A file of embedders alone judges nothing; a voter stands beside it.
    other = '[[judge]]\nname = "other"\nprovider = "openai"\nmodel = "m"\n[panel]\nensemble = ["other"]'
    assert judges_file.parse(f"{block}\n{other}").judges[0].provider == name
