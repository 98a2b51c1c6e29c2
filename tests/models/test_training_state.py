"""Interrupted training goes on to the same weights, and a damaged state is no obstacle."""

import logging

import pytest
import torch
from safetensors.torch import save_file

from leakboard.models import training_state
from leakboard.models.training import shuffled, train
from leakboard.models.training_state import TrainingState
from leakboard.randomness import seeded

INPUTS, TARGETS = torch.randn(60, 5, generator=torch.Generator().manual_seed(0)), torch.arange(60) % 3


@pytest.fixture(autouse=True)
def saved_after_each_epoch(monkeypatch):
    monkeypatch.setattr(training_state, "SAVE_SECONDS", -1.0)


def trained(path, epochs=6, stop_after=None, patience=None, losses=None):
    """Train a network with dropout and a schedule; return its weights and dev losses."""
    generator = torch.Generator().manual_seed(1)
    with seeded(2):
        module = torch.nn.Sequential(torch.nn.Linear(5, 8), torch.nn.Dropout(0.3), torch.nn.Linear(8, 3))
        optimiser = torch.optim.AdamW(module.parameters(), lr=0.05)
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 0.05, total_steps=epochs * 4 + 1)
        done = []

        def dev_loss():
            if len(done) == stop_after:
                raise KeyboardInterrupt
            done.append(None)
            if losses:
                return losses.pop(0)
            return torch.nn.functional.cross_entropy(module(INPUTS), TARGETS).item()

        history = train(
            module,
            lambda: shuffled(60, 15, generator),
            lambda rows: torch.nn.functional.cross_entropy(module(INPUTS[rows]), TARGETS[rows]),
            dev_loss,
            optimiser=optimiser,
            epochs=epochs,
            patience=patience,
            scheduler=schedule,
            state=path and TrainingState(path, module, optimiser, schedule, generator),
        )
    assert not module.training
    return module.state_dict(), history, len(done)


def same(first, second):
    return all(torch.equal(first[name], second[name]) for name in first)


def test_interrupted_training_goes_on_to_the_same_weights(tmp_path):
    whole, history, _ = trained(None)
    path = tmp_path / "state.safetensors"
    with pytest.raises(KeyboardInterrupt):
        trained(path, stop_after=3)
    resumed, resumed_history, epochs = trained(path)
    assert epochs == 3
    assert resumed_history == history
    assert same(resumed, whole)
    assert [file.name for file in tmp_path.iterdir()] == ["state.safetensors"]


def test_finished_training_is_not_repeated(tmp_path):
    path = tmp_path / "state.safetensors"
    first, *_ = trained(path)
    again, _, epochs = trained(path)
    assert epochs == 0
    assert same(first, again)


def test_patience_that_was_at_its_end_is_still_at_its_end(tmp_path):
    path, losses = tmp_path / "state.safetensors", [3.0, 2.0, 2.5, 2.6]
    _, history, _ = trained(path, patience=2, losses=losses)
    assert history == [3.0, 2.0, 2.5, 2.6]
    assert trained(path, patience=2)[2] == 0


def state_of(path, width):
    module = torch.nn.Sequential(torch.nn.Linear(5, 8), torch.nn.Linear(8, width))
    optimiser = torch.optim.AdamW(module.parameters(), lr=0.05)
    return TrainingState(path, module, optimiser, None, torch.Generator().manual_seed(0))


@pytest.mark.parametrize("damage", ["no state", "another module", "no history"])
def test_a_state_that_cannot_be_used_changes_nothing(tmp_path, caplog, damage):
    path = tmp_path / "state.safetensors"
    if damage == "no state":
        path.write_bytes(b"no state")
    elif damage == "another module":
        state_of(path, 4).save([1.0], None)
    else:
        save_file({"module/0.weight": torch.zeros(1)}, path)
    state = state_of(path, 3)
    before = {name: value.clone() for name, value in state.module.state_dict().items()}
    with caplog.at_level(logging.INFO):
        assert state.load() == ([], None)
    assert "starts again: the saved state cannot be used" in caplog.text
    assert same(before, state.module.state_dict())
