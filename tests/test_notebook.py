"""The notebook of the documentation runs, finds planted secrets, and is kept without outputs."""

import json
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parent.parent
NOTEBOOK = CHECKOUT / "docs" / "own_vectors.ipynb"


def test_it_is_kept_without_outputs():
    cells = json.loads(NOTEBOOK.read_text("utf-8"))["cells"]
    assert [cell["outputs"] for cell in cells if cell["cell_type"] == "code"] == [[]] * 6


@pytest.mark.slow
def test_it_runs_and_finds_what_is_planted(tmp_path, monkeypatch):
    nbclient = pytest.importorskip("nbclient", reason="the notebook is run by nbclient: pip install nbclient ipykernel")
    pytest.importorskip("ipykernel", reason="the notebook is run by ipykernel: pip install ipykernel")
    import nbformat

    monkeypatch.setenv("PYTHONPATH", str(CHECKOUT))
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    resources = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3", resources=resources).execute()
    shown = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    texts = "\n".join(output.data["text/plain"] for output in shown if output.output_type == "execute_result")
    gender, region = (
        next(line for line in texts.splitlines() if line.startswith(name)) for name in ("gender", "region")
    )
    assert float(gender.partition("gains ")[2][:4]) > 0.4
    assert "chance" not in gender
    assert "gains nothing" in region or "this may be chance" in region
    assert "the claim is violated" in texts
    assert "the claim is not refuted" in texts
    assert any(
        "text/html" in output.data and "<table" in output.data["text/html"] for output in shown if "data" in output
    )
    assert any("application/vnd.plotly.v1+json" in output.data for output in shown if "data" in output)
    assert not list(tmp_path.iterdir())
