"""Addresses: the ledger of a campaign, the caps of a collection."""

from django.urls import URLPattern, path

from annotation.views import money

urlpatterns: list[URLPattern] = [
    path("c/<slug:name>/campaigns/<int:campaign>/ledger/", money.ledger, name="ledger"),
    path("c/<slug:name>/campaigns/<int:campaign>/ledger.csv", money.ledger_csv, name="ledger_csv"),
    path("c/<slug:name>/settings/money/", money.money_settings, name="money_settings"),
]
