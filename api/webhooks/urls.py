"""URLs of the pages of webhooks."""

from django.urls import URLPattern, path

from api.webhooks import views

HERE = "c/<slug:name>/webhooks/"
ONE = f"{HERE}<int:webhook>/"

urlpatterns: list[URLPattern] = [
    path(HERE, views.webhooks, name="webhooks"),
    path(ONE, views.webhook, name="webhook"),
    path(f"{ONE}deliveries/<int:delivery>/", views.delivery, name="webhook_delivery"),
    path(f"{ONE}deliveries/<int:delivery>/replay/", views.replay, name="replay_webhook"),
    path(f"{ONE}<slug:act>/", views.control_webhook, name="control_webhook"),
]
