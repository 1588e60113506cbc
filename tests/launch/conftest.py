import pytest
from launches import Run


@pytest.fixture
def launch(tmp_path):
    """``launch(text, *arguments)``: a launch of a script, and no process of it is left behind."""
    runs = []

    def start(text, *arguments, **options):
        runs.append(Run(tmp_path, text, *arguments, **options))
        return runs[-1]

    yield start
    for run in runs:
        run.kill()
        assert run.ours() == {}
