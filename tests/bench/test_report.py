"""The page of the figures: a new table takes the place of the old one, and of nothing else."""

from tools.bench import report


def test_a_new_table_leaves_every_part_that_was_written_by_hand() -> None:
    old = report.PAGE.read_text()
    new = report.page([{"name": "paid_twice", "value": 0, "unit": "calls", "aim": "0"}], {"inserts_per_s": 1.0})
    assert "engine_ratio` | openai SDK, 1 worker" not in new and "| `paid_twice` | | 0 calls | 0 | |" in new
    table, begin, by_hand = old.partition("\n## ")
    assert new.endswith(begin + by_hand), "every part below the table"
    assert table.split("\n\n")[1].split("Ratios")[1] == new.split("\n\n")[1].split("Ratios")[1], (
        "and the words above it"
    )
