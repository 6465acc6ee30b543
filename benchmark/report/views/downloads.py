"""Charts and tables of a page to save: `?chart=<key>&as=svg|csv|tex` and `?table=<key>&as=csv|tex`."""

from collections.abc import Iterable

from django.http import Http404, HttpRequest, HttpResponse
from django.utils.translation import gettext as _

from benchmark.report.downloads import DownloadTable
from charts import Chart
from corpus import chart_downloads


def download(
    request: HttpRequest, charts: Iterable[Chart | None], tables: Iterable[DownloadTable | None] = ()
) -> HttpResponse | None:
    """The file that was asked for, or None where the page itself was. 404: there is no such file."""
    key, form = request.GET.get("table"), request.GET.get("as")
    if key is None:
        return chart_downloads.download(request, charts)
    table = next((one for one in tables if one is not None and one.key == key), None)
    if table is None or form not in ("csv", "tex"):
        raise Http404(_("No such table."))
    text = table.csv() if form == "csv" else table.latex()
    headers = {"Content-Disposition": f'attachment; filename="{table.key}.{form}"'}
    return HttpResponse(text, content_type=f"{chart_downloads.TYPES[form]}; charset=utf-8", headers=headers)
