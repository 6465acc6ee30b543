"""Addresses of the people's pages: judging, administration, reports."""

from annotation.accounts.urls import urlpatterns as accounts
from annotation.adjudication.urls import urlpatterns as adjudication
from annotation.agreement.urls import urlpatterns as agreement
from annotation.aspects.urls import urlpatterns as aspects
from annotation.audit_log.urls import urlpatterns as audit_log
from annotation.bulk.urls import urlpatterns as bulk
from annotation.campaigns.urls import urlpatterns as campaigns
from annotation.costs.urls import urlpatterns as money
from annotation.dashboard.urls import urlpatterns as admin
from annotation.experiments.urls import urlpatterns as fairness
from annotation.exports.urls import urlpatterns as reports
from annotation.glossary.urls import urlpatterns as glossary
from annotation.imports.urls import urlpatterns as imports
from annotation.judge_setup.urls import urlpatterns as judge_setup
from annotation.judging.urls import urlpatterns as judging
from annotation.label_errors.urls import urlpatterns as label_errors
from annotation.label_quality.urls import urlpatterns as trust
from annotation.panels.urls import urlpatterns as panel
from annotation.people.urls import urlpatterns as people
from annotation.policies.urls import urlpatterns as policies
from annotation.quality_control.urls import urlpatterns as care
from annotation.query_splits.urls import urlpatterns as query_splits
from annotation.web_search.urls import urlpatterns as web_search

# Money before campaigns: there `campaigns/<id>/<act>/` would take its address.
urlpatterns = [
    *judging,
    *adjudication,
    *aspects,
    *accounts,
    *audit_log,
    *glossary,
    *money,
    *admin,
    *web_search,
    *imports,
    *bulk,
    *people,
    *campaigns,
    *trust,
    *label_errors,
    *policies,
    *agreement,
    *query_splits,
    *reports,
    *panel,
    *judge_setup,
    *fairness,
    *care,
]
