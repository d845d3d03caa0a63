"""The notebooks of the documentation: each runs from its first cell to its last, and is stored without output."""

import pytest
from places import ROOT

nbformat = pytest.importorskip("nbformat")

BOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))


def test_there_is_one_for_a_stream_for_a_run_and_for_data_of_ones_own():
    assert [path.stem for path in BOOKS] == ["own_data", "run", "stream"]


@pytest.mark.parametrize("path", BOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_stored_without_output(path):
    """What it prints comes from the machine that runs it: stored, it would grow old."""
    cells = nbformat.read(path, as_version=4).cells
    assert all(not cell.outputs and cell.execution_count is None for cell in cells if cell.cell_type == "code")


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("path", BOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_to_its_end(path, tmp_path):
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    book = nbformat.read(path, as_version=4)
    done = nbclient.NotebookClient(book, timeout=240, resources={"metadata": {"path": str(tmp_path)}}).execute()
    shown = [output for cell in done.cells if cell.cell_type == "code" for output in cell.outputs]
    assert not [output for output in shown if output.output_type == "error"]
    if path.stem == "run":
        assert any("<table>" in output.get("data", {}).get("text/html", "") for output in shown)
