"""URLs of importing files."""

from django.urls import URLPattern, path

from annotation.data.imports import views

urlpatterns: list[URLPattern] = [
    path("c/<slug:name>/import/", views.import_files, name="import"),
    path("c/<slug:name>/import/query-log/", views.import_query_log, name="import_query_log"),
    path("c/<slug:name>/import/uploads/", views.create_upload, name="create_upload"),
    path("c/<slug:name>/import/uploads/delete/", views.delete_upload, name="delete_upload"),
    path("c/<slug:name>/import/uploads/<int:upload>/", views.change_upload, name="upload"),
    path("c/<slug:name>/import/<int:file_import>/", views.file_import, name="file_import"),
    path("c/<slug:name>/import/<int:file_import>/<slug:act>/", views.control_import, name="control_import"),
]
