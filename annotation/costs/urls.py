"""Addresses: the ledger of a campaign, the caps of a collection, the prices of judges."""

from django.urls import URLPattern, path

from annotation.costs.views import costs, prices

urlpatterns: list[URLPattern] = [
    path("c/<slug:name>/campaigns/<int:campaign>/ledger/", costs.ledger, name="ledger"),
    path("c/<slug:name>/campaigns/<int:campaign>/ledger.csv", costs.ledger_csv, name="ledger_csv"),
    path("c/<slug:name>/prices/", prices.prices, name="prices"),
    path("c/<slug:name>/prices/<int:version>/", prices.price, name="price"),
]
