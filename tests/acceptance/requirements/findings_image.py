"""Findings of FINDINGS.md (277e3a9) and issue 13 on the container image and the supply chain."""

from __future__ import annotations

from tests.acceptance.requirements.form import of

_found, _asked = of("finding"), of("issue 13")
_IMAGES = "architecture/test_images.py::"

FINDINGS_IMAGE = (
    _found("A15", "The embedded Redis is a maintained release; versions are locked with hashes.",
           "unit/test_embedded_home.py::"
           "test_a_redis_server_on_the_path_serves_where_no_valkey_is_installed_if_it_is_new_enough",
           "integration/test_embedded.py::test_one_part_alone_can_be_embedded",
           f"{_IMAGES}test_the_images_lock_installs_the_versions_that_are_tested_and_no_tools",
           missing="The weights come from a third party's package (digest checked); CI has no advisory "
                   "database for `make audit`."),
    _asked("image", "Dockerfile and compose.yaml: two targets, non-root, read-only root, one volume.",
           f"{_IMAGES}test_both_targets_run_the_service_as_an_unprivileged_user",
           f"{_IMAGES}test_every_file_that_the_build_copies_is_there_and_not_ignored",
           f"{_IMAGES}test_our_services_are_confined_and_use_settings_that_exist",
           f"{_IMAGES}test_there_is_a_service_a_worker_and_a_migration_before_both"),
)
