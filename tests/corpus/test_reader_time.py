"""Times as people read them: the zone is named where it is not the reader's own, and always in the exact time."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from django.template import engines
from django.utils import timezone, translation

from corpus.reader_time import format_exact_time, format_time, name_zone

AT = datetime(2026, 11, 29, 21, 30, 5, tzinfo=UTC)


def own(name: str) -> ZoneInfo:
    return ZoneInfo.no_cache(name)


@pytest.mark.parametrize(
    ("zone", "short", "exact"),
    [
        ("Europe/Berlin", "29 Nov 2026, 22:30", "29 Nov 2026, 22:30:05 CET (UTC+01:00)"),
        ("Asia/Kathmandu", "30 Nov 2026, 03:15", "30 Nov 2026, 03:15:05 UTC+05:45"),
        ("America/St_Johns", "29 Nov 2026, 18:00", "29 Nov 2026, 18:00:05 NST (UTC-03:30)"),
        ("UTC", "29 Nov 2026, 21:30", "29 Nov 2026, 21:30:05 UTC"),
    ],
)
def test_in_the_readers_zone_only_the_exact_time_names_it(zone: str, short: str, exact: str) -> None:
    with timezone.override(own(zone)):
        assert (format_time(AT), format_exact_time(AT)) == (short, exact)


def test_the_sites_zone_is_named_where_the_readers_is_unknown_but_not_beside_a_mere_date() -> None:
    assert format_time(AT) == "29 Nov 2026, 21:30 UTC"
    assert format_time(AT, "SHORT_DATE_FORMAT") == "29 Nov 2026"
    with translation.override("zh-hans"):
        assert format_time(AT, "MONTH_DAY_TIME_FORMAT") == "11月29日 21:30 UTC"


def test_summer_time_is_told() -> None:
    assert name_zone(datetime(2026, 7, 1, tzinfo=own("Europe/Berlin"))) == "CEST (UTC+02:00)"


def test_every_template_writes_a_time_as_an_element_that_programs_read_too() -> None:
    template = engines["django"].from_string('{{ at|moment }}|{{ at|time_text:"H:i" }}|{{ never|moment }}')
    with timezone.override(own("Asia/Shanghai")):
        assert template.render({"at": AT, "never": None}) == (
            '<time datetime="2026-11-29T21:30:05+00:00" title="30 Nov 2026, 05:30:05 CST (UTC+08:00)">'
            "30 Nov 2026, 05:30</time>|05:30|"
        )
