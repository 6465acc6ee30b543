"""Addresses: the ledger of a campaign, the caps of a collection, the prices of judges."""

from django.urls import URLPattern, path

from annotation.views import money, prices

urlpatterns: list[URLPattern] = [
    path("c/<slug:name>/campaigns/<int:campaign>/ledger/", money.ledger, name="ledger"),
    path("c/<slug:name>/campaigns/<int:campaign>/ledger.csv", money.ledger_csv, name="ledger_csv"),
    path("c/<slug:name>/settings/money/", money.money_settings, name="money_settings"),
    path("c/<slug:name>/prices/", prices.prices, name="prices"),
    path("c/<slug:name>/prices/<int:version>/", prices.price, name="price"),
]
