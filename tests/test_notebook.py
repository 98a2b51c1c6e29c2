"""The notebooks of the documentation run, find planted secrets, make a paper's figure, and are kept without outputs."""

import json
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parent.parent
NOTEBOOKS = {"own_vectors": 6, "paper_figures": 5}
"""Numbers of cells with code."""


@pytest.mark.parametrize(("name", "count"), NOTEBOOKS.items())
def test_they_are_kept_without_outputs(name, count):
    cells = json.loads((CHECKOUT / "docs" / f"{name}.ipynb").read_text("utf-8"))["cells"]
    assert [cell["outputs"] for cell in cells if cell["cell_type"] == "code"] == [[]] * count


def run(name, folder, monkeypatch):
    """Run a notebook in a folder, and return its outputs."""
    nbclient = pytest.importorskip("nbclient", reason="the notebook is run by nbclient: pip install nbclient ipykernel")
    pytest.importorskip("ipykernel", reason="the notebook is run by ipykernel: pip install ipykernel")
    import nbformat

    monkeypatch.setenv("PYTHONPATH", str(CHECKOUT))
    notebook = nbformat.read(CHECKOUT / "docs" / f"{name}.ipynb", as_version=4)
    resources = {"metadata": {"path": str(folder)}}
    nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3", resources=resources).execute()
    return [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]


@pytest.mark.slow
def test_own_vectors_finds_what_is_planted(tmp_path, monkeypatch):
    shown = run("own_vectors", tmp_path, monkeypatch)
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


@pytest.mark.slow
def test_paper_figures_makes_a_figure_and_a_table(tmp_path, monkeypatch, browser):
    pytest.importorskip("kaleido", reason="figures are saved by kaleido: the extra paper has it")
    shown = run("paper_figures", tmp_path, monkeypatch)
    printed = "".join(output.text for output in shown if output.output_type == "stream" and output.name == "stdout")
    rows = [line for line in printed.splitlines() if line.startswith("DPNR")]
    assert [row.partition(" &")[0] for row in rows] == [
        f"DPNR (epsilon={e})" for e in ("0.5", "1.0", "2.0", "5.0", "10.0")
    ]
    assert "@misc{leakboard-" in printed
    (line,) = next(
        output.data["application/vnd.plotly.v1+json"]["data"]
        for output in shown
        if "application/vnd.plotly.v1+json" in getattr(output, "data", {})
    )
    assert line["x"] == [0.5, 1, 2, 5, 10]
    assert (tmp_path / "privacy.pdf").read_bytes().startswith(b"%PDF")
