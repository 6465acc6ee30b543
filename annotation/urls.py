"""Addresses of the people's pages: judging, administration, reports."""

from annotation.accounts.urls import urlpatterns as accounts
from annotation.accounts.urls_display import urlpatterns as reach
from annotation.aspects.urls import urlpatterns as aspects
from annotation.audit_log.urls import urlpatterns as audit_log
from annotation.costs.urls import urlpatterns as money
from annotation.dashboard.urls import urlpatterns as admin
from annotation.experiments.urls import urlpatterns as fairness
from annotation.exports.urls import urlpatterns as reports
from annotation.judging.urls import urlpatterns as judging
from annotation.label_quality.urls import urlpatterns as trust
from annotation.panels.urls import urlpatterns as panel
from annotation.panels.urls_canaries import urlpatterns as canaries
from annotation.quality_control.urls import urlpatterns as care

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
