"""The training loop: which epoch is kept, when it stops, and numbers too small to compute with."""

import math
import threading

import pytest
import torch

from leakboard.models.training import shuffled, train

TINY = torch.finfo(torch.float32).tiny


class Counter(torch.nn.Module):
    """A single weight that every step raises by one."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(1))


def run(dev_losses, epochs=None, batches=3, **options):
    """Train with given dev losses and return the module and the history; the weight counts the steps."""
    module, losses = Counter(), iter(dev_losses)
    optimiser = torch.optim.SGD(module.parameters(), lr=1.0)
    history = train(
        module,
        lambda: range(batches),
        lambda batch: -module.weight.sum(),
        lambda: next(losses),
        optimiser=optimiser,
        epochs=epochs or len(dev_losses),
        **options,
    )
    return module.weight.item(), history


class TestSelection:
    """Which epoch's weights are left."""

    @pytest.mark.parametrize(("losses", "best"), [([3, 1, 2], 2), ([1, 2, 3], 1), ([3, 2, 1], 3), ([2, 1, 1, 3], 3)])
    def test_the_best_epoch_is_restored(self, losses, best):
        weight, history = run(losses)
        assert weight == 3 * best
        assert history == losses

    @pytest.mark.parametrize(
        ("losses", "patience", "seen"), [([5, 4, 6, 6, 1], 2, 4), ([5, 4, 6, 3, 6, 6], 2, 6), ([1, 2, 3], 1, 2)]
    )
    def test_patience_stops(self, losses, patience, seen):
        _, history = run(losses, patience=patience)
        assert history == losses[:seen]

    def test_without_patience_all_epochs_run(self):
        assert len(run([1, 2, 3, 4, 5])[1]) == 5


class TestNonFinite:
    """Divergence is told, once nothing can be kept."""

    @pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
    def test_in_every_epoch_raises(self, value):
        with pytest.raises(FloatingPointError, match="not finite in any of 2 epochs"):
            run([value, value])

    @pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
    @pytest.mark.parametrize(("place", "best"), [(0, 3), (1, 3), (2, 2)])
    def test_in_some_epochs_leaves_the_best_of_the_others(self, value, place, best):
        losses = [4.0, 3.0, 2.0]
        losses[place] = value
        assert run(losses)[0] == 3 * best

    def test_patience_counts_from_the_best_finite_epoch(self):
        assert len(run([math.nan, 2.0, math.nan, 3.0, 1.0], patience=2)[1]) == 4


def test_the_schedule_is_stepped_every_batch():
    module = Counter()
    optimiser = torch.optim.SGD(module.parameters(), lr=1.0)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: 1 - step / 6)
    train(
        module,
        lambda: range(3),
        lambda batch: -module.weight.sum(),
        lambda: 0.0,
        optimiser=optimiser,
        epochs=2,
        scheduler=schedule,
    )
    assert module.weight.item() == pytest.approx(sum(1 - step / 6 for step in range(6)))
    assert optimiser.param_groups[0]["lr"] == 0


def test_the_gradient_is_clipped():
    module = Counter()
    optimiser = torch.optim.SGD(module.parameters(), lr=1.0)
    train(
        module,
        lambda: range(1),
        lambda batch: -100 * module.weight.sum(),
        lambda: 0.0,
        optimiser=optimiser,
        epochs=1,
        clipping_norm=0.5,
    )
    assert module.weight.item() == pytest.approx(0.5, rel=1e-4)


def test_modes_follow_the_phase():
    module, seen = Counter(), []

    def loss(batch):
        seen.append(("train", module.training, torch.is_grad_enabled()))
        return module.weight.sum()

    def dev_loss():
        seen.append(("dev", module.training, torch.is_grad_enabled()))
        return 0.0

    optimiser = torch.optim.SGD(module.parameters(), lr=1.0)
    train(module, lambda: range(1), loss, dev_loss, optimiser=optimiser, epochs=1)
    assert seen == [("train", True, True), ("dev", False, False)]


def test_shuffled_covers_every_index_once_an_epoch():
    generator = torch.Generator().manual_seed(0)
    first, second = (torch.cat(list(shuffled(103, 10, generator))) for _ in range(2))
    assert sorted(first.tolist()) == sorted(second.tolist()) == list(range(103))
    assert first.tolist() != second.tolist()


def subnormal(tensor):
    """Count subnormal numbers by their bits: arithmetic may take them for zero."""
    bits = tensor.detach().view(torch.int32) & 0x7FFFFFFF
    return int(((bits > 0) & (bits < 0x00800000)).sum())


def plain(module, batches, loss, dev_loss, *, optimiser, epochs):
    """Train without any care."""
    for _ in range(epochs):
        for batch in batches():
            optimiser.zero_grad(set_to_none=True)
            loss(batch).backward()
            optimiser.step()
        dev_loss()


def subnormals_of(optimiser):
    return sum(subnormal(v) for state in optimiser.state.values() for v in state.values() if v.numel() > 1)


class TestSubnormals:
    """Inputs of large scale kill units; Adam's moments of their weights decay for ever."""

    @pytest.mark.parametrize(("trainer", "clean"), [(plain, False), (train, True)])
    def test_dead_units_leave_them_and_training_does_not(self, trainer, clean):
        torch.manual_seed(0)
        inputs, targets = 1e4 * torch.randn(64, 16), torch.randint(0, 2, (64,))
        network = torch.nn.Sequential(torch.nn.Linear(16, 64), torch.nn.ReLU(), torch.nn.Linear(64, 2))
        optimiser = torch.optim.Adam(network.parameters(), lr=1e-3, fused=True)

        def loss(batch):
            return torch.nn.functional.cross_entropy(network(inputs), targets)

        def dying():
            with torch.no_grad():
                network[0].bias[:32] = -1e9
            return 0.0

        trainer(network, lambda: range(300), loss, dying, optimiser=optimiser, epochs=4)
        assert (subnormals_of(optimiser) == 0) == clean

    @pytest.mark.parametrize(("trainer", "clean"), [(plain, False), (train, True)])
    def test_of_other_threads_too(self, trainer, clean):
        """The processor's switch reaches one thread only, and Adam's step is shared between two."""
        weights = torch.nn.Linear(1, 8192, bias=False)
        optimiser = torch.optim.Adam(weights.parameters(), betas=(0.5, 0.9), fused=True)
        scales = iter([1e-30] + [0.0] * 40)

        def steps():
            torch.set_num_threads(2)
            torch.ones(2**20).add(1)  # starts the second thread, which begins with this one's switch
            torch.set_flush_denormal(True)
            trainer(
                weights,
                lambda: range(40),
                lambda batch: weights.weight.sum() * next(scales),
                lambda: 0.0,
                optimiser=optimiser,
                epochs=1,
            )

        threads = torch.get_num_threads()
        fresh = threading.Thread(target=steps)  # threads of an earlier test's training may have inherited the switch
        fresh.start()
        fresh.join()
        torch.set_num_threads(threads)
        assert (subnormals_of(optimiser) == 0) == clean

    def test_the_switch_is_on_inside_and_off_afterwards(self):
        module, seen = Counter(), []

        def flushed():
            return (torch.tensor([TINY]) / 4).view(torch.int32).item() == 0

        def loss(batch):
            seen.append(flushed())
            return module.weight.sum()

        optimiser = torch.optim.SGD(module.parameters(), lr=1.0)
        assert not flushed()
        train(module, lambda: range(1), loss, lambda: 0.0, optimiser=optimiser, epochs=1)
        assert seen == [True]
        assert not flushed()
        with pytest.raises(FloatingPointError):
            train(module, lambda: range(1), loss, lambda: math.nan, optimiser=optimiser, epochs=1)
        assert not flushed()
