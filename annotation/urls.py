"""Addresses of the people's pages: judging, administration, reports."""

from annotation.urls_accounts import urlpatterns as accounts
from annotation.urls_admin import urlpatterns as admin
from annotation.urls_aspects import urlpatterns as aspects
from annotation.urls_audit_log import urlpatterns as audit_log
from annotation.urls_canaries import urlpatterns as canaries
from annotation.urls_care import urlpatterns as care
from annotation.urls_fairness import urlpatterns as fairness
from annotation.urls_judging import urlpatterns as judging
from annotation.urls_money import urlpatterns as money
from annotation.urls_panel import urlpatterns as panel
from annotation.urls_reach import urlpatterns as reach
from annotation.urls_reports import urlpatterns as reports
from annotation.urls_trust import urlpatterns as trust

# Money before the administration: there `campaigns/<id>/<act>/` would take its address.
urlpatterns = [
    *judging,
    *aspects,
    *accounts,
    *audit_log,
    *money,
    *admin,
    *trust,
    *reports,
    *panel,
    *canaries,
    *fairness,
    *care,
    *reach,
]
