"""Downloads of a page's charts and tables, at the page's own address.

`?chart=<key>&as=svg|csv|tex` and `?table=<key>&as=csv|tex|json`.

CSV is for programs and always in English (`as=csv` sets the language of the request). SVG and LaTeX
are in the reader's language.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _

from charts import Chart
from charts.downloads import DownloadTable
from corpus.access import AccessScope

TYPES = {"svg": "image/svg+xml", "csv": "text/csv", "tex": "application/x-tex"}
TABLE_TYPES = {name: TYPES[name] for name in ("csv", "tex")} | {"json": "application/json"}


def _answer(text: str, name: str, form: str, kind: str) -> HttpResponse:
    headers = {"Content-Disposition": f'attachment; filename="{name}.{form}"'}
    return HttpResponse(text, content_type=f"{kind}; charset=utf-8", headers=headers)


def download(request: HttpRequest, charts: Iterable[Chart | None]) -> HttpResponse | None:
    """Return the requested chart, or None if the page itself was requested. Raises Http404 for an unknown chart."""
    key, form = request.GET.get("chart"), request.GET.get("as", "svg")
    if key is None:
        return None
    chart = next((chart for chart in charts if chart is not None and chart.key == key), None)
    if chart is None or form not in TYPES:
        raise Http404(_("Chart not found."))
    # Charts are pure, and the names of their columns are in English.
    if form == "tex":
        chart = replace(chart, header=tuple(_(name) for name in chart.header))
    text = {"svg": chart.standalone, "csv": chart.csv, "tex": chart.latex}[form]()
    return _answer(text, chart.key, form, TYPES[form])


def send_file(
    request: HttpRequest, charts: Iterable[Chart | None], tables: Iterable[DownloadTable | None] = ()
) -> HttpResponse | None:
    """Return the requested chart or table, or None if the page itself was requested. Raises Http404."""
    if (key := request.GET.get("table")) is None:
        return download(request, charts)
    form = request.GET.get("as")
    table = next((table for table in tables if table is not None and table.key == key), None)
    if table is None or form not in TABLE_TYPES:
        raise Http404(_("Unknown table."))
    text = {"csv": table.csv, "tex": table.latex, "json": table.json}[form]()
    return _answer(text, table.key, form, TABLE_TYPES[form])


def send_lines(lines: Iterable[str], name: str) -> StreamingHttpResponse:
    """Return a text file, whose lines are sent as they are read: there may be millions."""
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return StreamingHttpResponse(lines, content_type="text/plain; charset=utf-8", headers=headers)


def answer_page(
    request: HttpRequest,
    scope: AccessScope,
    page: str,
    context: dict[str, Any],
    *,
    charts: Iterable[Chart | None] = (),
    tables: Iterable[DownloadTable | None] = (),
    news: str = "",
    is_over: bool = True,
    status: int = 200,
) -> HttpResponse:
    """Return the requested file; for HTMX the template `news`, with status 286 once `is_over`; or else the page."""
    if (file := send_file(request, charts, tables)) is not None:
        return file
    context = {"scope": scope, **context}
    if news and request.headers.get("HX-Request"):
        return render(request, news, context, status=286 if is_over else 200)
    return render(request, page, context, status=status)
