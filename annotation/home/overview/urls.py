"""URLs of the start page, the site's people and the admin pages of a collection."""

from django.urls import path

from annotation.data.views import pairs
from annotation.home.overview import views
from annotation.people.accounts import views as accounts
from annotation.work.settings import views as settings

site_urls = [
    path("", views.site_home, name="home"),
    path("collections/new/", views.new_collection, name="new_collection"),
    path("people/", accounts.people, name="site_accounts"),
    path("people/<int:user>/password/", accounts.password_link, name="password_link"),
    path("people/<int:user>/<slug:act>/", accounts.control_account, name="control_person"),
]

collection_urls = [
    path("", views.collection_home, name="collection"),
    path("judge-by-hand/", views.judge_by_hand, name="start_by_hand"),
    path("settings/", settings.settings, name="settings"),
    path("settings/costs/", settings.cost_settings, name="cost_settings"),
    path("settings/experiment-arms/", settings.arm_settings, name="arm_settings"),
    path("settings/preset/", settings.apply_preset, name="apply_preset"),
    path("settings/instruction/", settings.text_editor, {"kind": "instruction"}, name="instruction"),
    path("settings/guidelines/", settings.text_editor, {"kind": "guidelines"}, name="guidelines_editor"),
    path("agreement/two/", pairs.two_assessors, name="two_assessors"),
    path("pairs/", pairs.pairs, name="pairs"),
    path("pairs/views/", pairs.save_view, name="save_view"),
    path("pairs/views/<int:view>/", pairs.change_view, name="change_view"),
    path("pairs/skipped/adjudicate/", pairs.hand_over_skipped, name="hand_over_skipped"),
    path("pairs/columns/", pairs.set_columns, name="set_columns"),
]

urlpatterns = [
    *site_urls,
    *[path(f"c/<slug:name>/{url.pattern}", url.callback, url.default_args, name=url.name) for url in collection_urls],
]
