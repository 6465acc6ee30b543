"""Charts of a page to save: `?chart=<key>&as=svg|csv|tex` of the page's own address.

CSV is for programs: English, whoever asks (`as=csv` decides the language of the request). SVG and LaTeX are read.
"""

from collections.abc import Iterable
from dataclasses import replace

from django.http import Http404, HttpRequest, HttpResponse
from django.utils.translation import gettext as _

from charts import Chart

TYPES = {"svg": "image/svg+xml", "csv": "text/csv", "tex": "application/x-tex"}


def download(request: HttpRequest, charts: Iterable[Chart | None]) -> HttpResponse | None:
    """Return the file that was asked for, or None where the page itself was. Raises 404 for an unknown one."""
    key, form = request.GET.get("chart"), request.GET.get("as", "svg")
    if key is None:
        return None
    chart = next((one for one in charts if one is not None and one.key == key), None)
    if chart is None or form not in TYPES:
        raise Http404(_("Chart not found."))
    if form == "tex":  # pure charts keep their columns' names in English
        chart = replace(chart, header=tuple(_(name) for name in chart.header))
    text = {"svg": chart.standalone, "csv": chart.csv, "tex": chart.latex}[form]()
    headers = {"Content-Disposition": f'attachment; filename="{chart.key}.{form}"'}
    return HttpResponse(text, content_type=f"{TYPES[form]}; charset=utf-8", headers=headers)
