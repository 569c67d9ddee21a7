"""`[traces]` says where the files of results are."""

from edge.config import Settings
from edge.features.traces.settings import TracesSettings


def test_files_of_results_are_kept_where_the_settings_name_a_folder() -> None:
    assert Settings().results_folder == ""
    assert Settings(sections={"traces": TracesSettings()}).results_folder == ""
    assert Settings(sections={"traces": TracesSettings(directory="/var/t")}).results_folder == "/var/t"
