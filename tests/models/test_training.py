"""The training loop: the epoch that it keeps, when it stops, and subnormal numbers."""

import math
import threading

import pytest
import torch

from leakboard.models.training import passes_for, shuffled, train

TINY = torch.finfo(torch.float32).tiny


class Counter(torch.nn.Module):
    """A single weight that every step raises by one."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(1))


def run(dev_losses, gradient=-1, schedule=lambda step: 1.0, **options):
    """Train with given dev losses, three batches an epoch, and return the weight and the history."""
    module, losses = Counter(), iter(dev_losses)
    optimiser = torch.optim.SGD(module.parameters(), lr=1.0)
    history = train(
        module,
        lambda: range(3),
        lambda batch: gradient * module.weight.sum(),
        lambda: next(losses),
        optimiser=optimiser,
        epochs=len(dev_losses),
        scheduler=torch.optim.lr_scheduler.LambdaLR(optimiser, schedule),
        **options,
    )
    return module.weight.item(), history


class TestSelection:
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

    @pytest.mark.parametrize(("losses", "last"), [([1.0, 2.0, 3.0], 3), ([1.0, 2.0, math.nan], 2)])
    def test_the_last_finite_epoch_is_kept_on_request(self, losses, last):
        weight, history = run(losses, keep="last")
        assert weight == 3 * last
        assert len(history) == 3


@pytest.mark.parametrize(("count", "passes"), [(1, 40), (1_000, 10), (9_984, 2), (9_985, 1), (1_000_000, 1)])
def test_only_few_texts_need_several_passes(count, passes):
    assert passes_for(40, count, 256) == passes


class TestNonFinite:
    @pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
    def test_in_every_epoch_raises(self, value):
        with pytest.raises(FloatingPointError, match="not finite in any of 2 epochs"):
            run([value, value])

    @pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
    @pytest.mark.parametrize(("epoch", "best"), [(0, 3), (1, 3), (2, 2)])
    def test_in_some_epochs_leaves_the_best_of_the_others(self, value, epoch, best):
        losses = [4.0, 3.0, 2.0]
        losses[epoch] = value
        assert run(losses)[0] == 3 * best

    def test_patience_counts_from_the_best_finite_epoch(self):
        assert len(run([math.nan, 2.0, math.nan, 3.0, 1.0], patience=2)[1]) == 4


def test_the_schedule_is_stepped_every_batch():
    weight, _ = run([0.0, 0.0], schedule=lambda step: 1 - step / 6)
    assert weight == pytest.approx(sum(1 - step / 6 for step in range(6)))


def test_the_gradient_is_clipped():
    weight, _ = run([0.0], gradient=-100, clipping_norm=0.5)
    assert weight == pytest.approx(3 * 0.5, rel=1e-4)


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
    """Count subnormal numbers by their bits, since arithmetic may treat them as zero."""
    bits = tensor.detach().view(torch.int32) & 0x7FFFFFFF
    return int(((bits > 0) & (bits < 0x00800000)).sum())


def plain(module, batches, loss, dev_loss, *, optimiser, epochs):
    """Train without regard to subnormal numbers."""
    for _ in range(epochs):
        for batch in batches():
            optimiser.zero_grad(set_to_none=True)
            loss(batch).backward()
            optimiser.step()
        dev_loss()


def subnormals_of(optimiser):
    return sum(subnormal(v) for state in optimiser.state.values() for v in state.values() if v.numel() > 1)


class TestSubnormals:
    """Inputs of large scale kill units, and Adam's moments of their weights decay to subnormal numbers."""

    @pytest.mark.slow
    @pytest.mark.parametrize(("trainer", "clean"), [(plain, False), (train, True)])
    def test_of_dead_units(self, trainer, clean):
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
        """The processor's switch reaches one thread only, but two threads compute Adam's step."""
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
