"""Addresses of the ledger of a campaign and of the prices of judges."""

from django.urls import URLPattern, path

from annotation.quality.costs import views

urlpatterns: list[URLPattern] = [
    path("c/<slug:name>/campaigns/<int:campaign>/ledger/", views.ledger, name="ledger"),
    path("c/<slug:name>/campaigns/<int:campaign>/ledger.csv", views.ledger_csv, name="ledger_csv"),
    path("c/<slug:name>/prices/", views.prices, name="prices"),
    path("c/<slug:name>/prices/<int:version>/", views.price, name="price"),
]
