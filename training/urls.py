"""Addresses of training."""

from django.urls import URLPattern, path

from training.comparisons.views import compare_losses, compare_trained
from training.curves import views as curve_views
from training.jobs import views
from training.lineage.views import label_lineage, model_lineage

urlpatterns: list[URLPattern] = [
    path("c/<slug:name>/training/", views.training, name="training"),
    path("c/<slug:name>/training/start/", views.start_training, name="start_training"),
    path("c/<slug:name>/training/jobs/<int:job>/", views.training_job, name="training_job"),
    path("c/<slug:name>/training/jobs/<int:job>/files/<str:file>", views.job_file, name="job_file"),
    path("c/<slug:name>/training/jobs/<int:job>/rollouts/", views.job_rollouts, name="job_rollouts"),
    path("c/<slug:name>/training/jobs/<int:job>/judge/", views.judge_outputs, name="judge_outputs"),
    path("c/<slug:name>/training/jobs/<int:job>/<slug:act>/", views.control_job, name="control_job"),
    path("c/<slug:name>/training/compare/", compare_trained, name="compare_trained"),
    path("c/<slug:name>/training/compare/losses/", compare_losses, name="compare_losses"),
    path("c/<slug:name>/training/curves/", curve_views.curves, name="learning_curves"),
    path("c/<slug:name>/training/curves/start/", curve_views.start_curve, name="start_curve"),
    path("c/<slug:name>/training/curves/<int:curve>/", curve_views.learning_curve, name="learning_curve"),
    path("c/<slug:name>/training/curves/<int:curve>/<slug:act>/", curve_views.control_curve, name="control_curve"),
    path("c/<slug:name>/training/models/<int:model>/", views.training_model, name="training_model"),
    path("c/<slug:name>/training/models/<int:model>/card", views.model_card, name="model_card"),
    path("c/<slug:name>/training/models/<int:model>/files/<path:file>", views.model_file, name="model_file"),
    path("c/<slug:name>/training/models/<int:model>/lineage/", model_lineage, name="model_lineage"),
    path("c/<slug:name>/pairs/<int:pair>/lineage/", label_lineage, name="label_lineage"),
    path("c/<slug:name>/training/models/<int:model>/<slug:act>/", views.use_model, name="use_model"),
]
