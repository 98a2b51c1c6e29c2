"""Private skip-gram: gradients by autograd, noise drawn late and at every step, sampler, personal budgets, resuming."""

import itertools
import math

import numpy as np
import pytest
import torch
from scipy import stats

from leakboard.models.skip_gram import descent as training_module
from leakboard.models.skip_gram.descent import Descent, Training
from leakboard.models.skip_gram.noise import NoiseStream
from leakboard.models.skip_gram.noisy_tables import NoisyTables, Workspace
from leakboard.models.skip_gram.pairs import Pairs, pairs_of
from leakboard.models.skip_gram.participation import PaperAccounting, RenyiFilter
from leakboard.models.skip_gram.sampling import PoissonSampler, SequentialBatches

WORDS = 7


def tables(dimensions=5, seed=0, words=WORDS):
    values = np.random.default_rng(seed).normal(0, 0.7, (2 * words, dimensions)).astype(np.float32)
    return NoisyTables(values, np.zeros(2 * words))


def by_autograd(start, centres, targets, unit_starts, rate, clip, each_table):
    """Return the tables after a step without noise, and the norm of each unit's gradient, in double precision."""
    total, norms = np.zeros(start.shape), []
    for first, last in itertools.pairwise(unit_starts):
        table = torch.tensor(start, dtype=torch.float64, requires_grad=True)
        loss = torch.zeros((), dtype=torch.float64)
        for centre, row in zip(centres[first:last], targets[first:last], strict=True):
            scores = table[len(start) // 2 + torch.tensor(row)] @ table[int(centre)]
            loss = loss - torch.nn.functional.logsigmoid(scores[0]) - torch.nn.functional.logsigmoid(-scores[1:]).sum()
        gradient = torch.autograd.grad(loss, table)[0].numpy() if last > first else np.zeros(start.shape)
        norms.append(np.linalg.norm(gradient))
        parts = [slice(0, len(start) // 2), slice(len(start) // 2, None)] if each_table else [slice(None)]
        for part in parts:
            norm = np.linalg.norm(gradient[part])
            total[part] += gradient[part] * min(1.0, clip / norm if norm else 1.0)
    return start - rate * total, np.array(norms)


BATCHES = {
    "one pair a unit": ([0, 1, 2], [[1, 2, 3], [0, 4, 5], [6, 3, 1]], [0, 1, 2, 3]),
    "a negative drawn twice": ([0, 3], [[1, 2, 2], [4, 5, 5]], [0, 1, 2]),
    "the context as a negative": ([0, 3], [[1, 1, 2], [4, 5, 4]], [0, 1, 2]),
    "the centre as its own context": ([2, 2], [[2, 2, 2], [0, 2, 2]], [0, 1, 2]),
    "units of several pairs": ([0, 0, 1, 5, 5], [[1, 2, 2], [1, 0, 3], [0, 0, 6], [5, 2, 1], [0, 1, 2]], [0, 3, 5]),
    "a unit without a pair": ([0, 1], [[1, 2, 3], [0, 2, 2]], [0, 0, 2, 2]),
}


@pytest.mark.parametrize("clip", [0.3, 5.0, math.inf])
@pytest.mark.parametrize("each_table", [False, True])
@pytest.mark.parametrize("batch", BATCHES)
def test_clipped_gradients_are_those_of_autograd(batch, clip, each_table):
    centres, targets, starts = BATCHES[batch]
    ours = tables()
    expected, norms = by_autograd(ours.values, centres, targets, starts, 0.2, clip, each_table)
    found = Workspace(ours).descend(
        np.array(centres, np.int32),
        np.array(targets, np.int32),
        np.array(starts),
        rate=0.2,
        clipping_norm=clip,
        each_table=each_table,
        deviation=0.0,
        noise=NoiseStream(1),
    )
    np.testing.assert_allclose(found, norms, rtol=1e-5)
    np.testing.assert_allclose(ours.values, expected, atol=1e-6)


def test_repeated_rows_clipped_one_by_one_would_fail():
    """A word that occurs twice in a unit counts with the norm of its sum, not of its parts."""
    centres, targets, starts = BATCHES["a negative drawn twice"]
    values = tables().values
    _, together = by_autograd(values, centres, targets, starts, 0.2, 1.0, False)
    apart = []
    for centre, row in zip(centres, targets, strict=True):
        scores = values[WORDS + np.array(row)] @ values[centre]
        errors = 1 / (1 + np.exp(-scores)) - (np.arange(3) == 0)
        squares = (errors**2).sum() * (values[centre] ** 2).sum()
        squares += ((errors[:, None] * values[WORDS + np.array(row)]) ** 2).sum()
        apart.append(math.sqrt(squares))
    assert (np.abs(together - apart) > 0.01 * together).all()


def test_no_contribution_is_longer_than_the_clipping_norm():
    rng = np.random.default_rng(3)
    for _ in range(200):
        start = NoisyTables(rng.normal(0, 3, (2 * WORDS, 8)).astype(np.float32), np.zeros(2 * WORDS))
        before = start.values.astype(np.float64)
        pairs = rng.integers(1, 6)
        Workspace(start).descend(
            rng.integers(0, WORDS, pairs).astype(np.int32),
            rng.integers(0, WORDS, (pairs, 4)).astype(np.int32),
            np.array([0, pairs]),
            rate=1.0,
            clipping_norm=0.5,
            each_table=False,
            deviation=0.0,
            noise=NoiseStream(1),
        )
        assert np.linalg.norm(start.values - before) <= 0.5 * (1 + 1e-5)


class TestLateNoise:
    """Noise drawn when a row is read has the law of noise drawn for every row at every step."""

    STEPS, RUNS = 6, 4_000
    BATCHES = ([0, 1], [[1], [2]]), ([3], [[3]]), ([0], [[2]]), ([4, 4], [[0], [1]]), ([1], [[1]]), ([5], [[0]])

    def run(self, key, *, eager, flushed=True, deviation=0.8):
        """Return what is published after four and after six steps, float64 (12 rows * 2 coordinates and as many)."""
        ours = tables(dimensions=2, seed=9, words=6)
        workspace, noise, published = Workspace(ours), NoiseStream(key), []
        for step, (centres, targets) in enumerate(self.BATCHES):
            if step == 4:
                published.append(ours.flush_noise(noise).ravel())
            workspace.descend(
                np.array(centres, np.int32),
                np.array(targets, np.int32),
                np.arange(len(centres) + 1),
                rate=0.5,
                clipping_norm=1.0,
                each_table=False,
                deviation=deviation * (1 + step % 3),
                noise=noise,
            )
            if eager:
                ours.flush_noise(noise)
        if flushed:
            ours.flush_noise(noise)
        return np.concatenate([*published, ours.values.ravel()]).astype(np.float64)

    def sample(self, offset, **how):
        return np.stack([self.run(offset + key, **how) for key in range(self.RUNS)])

    @staticmethod
    def differences(first, second):
        """Return the largest difference of means, and of covariances, in standard errors, and the least KS p-value."""
        n = len(first)
        means = (first.mean(0) - second.mean(0)) / np.sqrt((first.var(0) + second.var(0)) / n + 1e-12)
        centred = [sample - sample.mean(0) for sample in (first, second)]
        products = [np.einsum("ni,nj->nij", sample, sample) for sample in centred]
        spread = np.sqrt(sum(product.var(0) for product in products) / n + 1e-12)
        covariances = (products[0].mean(0) - products[1].mean(0)) / spread
        least = min(stats.ks_2samp(a, b).pvalue for a, b in zip(first.T, second.T, strict=True))
        return np.abs(means).max(), np.abs(covariances).max(), least

    @pytest.fixture(scope="class")
    @classmethod
    def eager(cls):
        return cls().sample(0, eager=True)

    def test_same_means_covariances_and_distributions(self, eager):
        means, covariances, least = self.differences(eager, self.sample(10**6, eager=False))
        assert means < 4.5
        assert covariances < 5.5  # the largest of 630 differences
        assert least > 1e-3 / eager.shape[1]

    def test_the_variance_of_a_row_that_nobody_reads_is_the_sum(self):
        """Row 5's output vector is never read: it gets six steps' noise in one draw."""
        last = self.sample(2 * 10**6, eager=False)[:, -2:]
        expected = sum((0.5 * 0.8 * (1 + step % 3)) ** 2 for step in range(self.STEPS))
        assert np.abs(last.var(0) / expected - 1).max() < 5 * math.sqrt(2 / self.RUNS)

    def test_noise_that_is_never_drawn_is_found(self, eager):
        _, covariances, least = self.differences(eager, self.sample(10**6, eager=False, flushed=False))
        assert covariances > 20
        assert least < 1e-9

    def test_a_tenth_less_noise_is_found(self, eager):
        _, covariances, _ = self.differences(eager, self.sample(10**6, eager=False, deviation=0.72))
        assert covariances > 5.5

    def test_without_noise_they_are_equal(self):
        np.testing.assert_array_equal(self.run(1, eager=True, deviation=0.0), self.run(2, eager=False, deviation=0.0))


class TestPairs:
    def test_all_neighbours_within_the_window(self):
        texts = [["a", "b", "x", "a"], ["b"], [], ["c", "c", "b"]]
        for window in (1, 2, 3):
            pairs = pairs_of(texts, None, ["a", "b", "c"], window)
            every = [
                (text[i], text[j])
                for text in texts
                for i in range(len(text))
                for j in range(max(0, i - window), min(len(text), i + window + 1))
                if j != i
            ]
            known = [unit for unit, pair in enumerate(every) if "x" not in pair]
            words = ["a", "b", "c"]
            named = [(words[c], words[o]) for c, o in zip(pairs.centres, pairs.contexts, strict=True)]
            assert named == [every[unit] for unit in known]
            assert (pairs.units, pairs.units_without_pairs) == (len(every), len(every) - len(known))
            drawn = np.array([0, 2, 3, len(every) - 1])
            centres, contexts, starts = pairs.batch(drawn)
            found = [(words[c], words[o]) for c, o in zip(centres, contexts, strict=True)]
            assert found == [every[unit] for unit in drawn if unit in known]
            assert starts.tolist() == list(range(len(found) + 1))

    def test_how_many_pairs_there_are_does_not_depend_on_the_vocabulary(self):
        texts = [["a", "b", "x", "a"], ["c", "c", "b"]]
        assert {pairs_of(texts, None, listed, 1).units for listed in ("", "a", "ab", "abc", "abcx")} == {10}
        assert len(pairs_of(texts, None, "", 1).batch(np.arange(10))[0]) == 0

    def test_texts_of_a_unit_stand_together(self):
        texts = [["a", "b"], ["b", "c"], ["c", "a"], ["z"]]
        pairs = pairs_of(texts, np.array([1, 0, 1, 2]), ["a", "b", "c"], 1)
        assert pairs.starts.tolist() == [0, 2, 6, 6]
        assert pairs.centres.tolist() == [1, 2, 0, 1, 2, 0]
        centres, contexts, starts = pairs.batch(np.array([0, 2]))
        assert (centres.tolist(), contexts.tolist(), starts.tolist()) == ([1, 2], [2, 1], [0, 2, 2])


class TestPoissonSampler:
    DRAWS = 20_000

    @pytest.fixture(scope="class")
    @classmethod
    def drawn(cls):
        sampler, generator = PoissonSampler(40, 0.1), np.random.default_rng(0)
        taken = np.zeros((cls.DRAWS, 40))
        for step in range(cls.DRAWS):
            taken[step, sampler.draw(step, generator)] = 1
        return taken

    def test_sizes_are_binomial(self, drawn):
        sizes = np.bincount(drawn.sum(1).astype(int), minlength=13)
        expected = self.DRAWS * stats.binom.pmf(np.arange(12), 40, 0.1)
        found = np.append(sizes[:12], sizes[12:].sum())
        expected = np.append(expected, self.DRAWS - expected.sum())
        assert stats.chisquare(found, expected).pvalue > 1e-3

    def test_every_unit_has_the_probability(self, drawn):
        assert np.abs(drawn.mean(0) - 0.1).max() < 4.5 * math.sqrt(0.09 / self.DRAWS)

    def test_units_and_steps_are_independent(self, drawn):
        correlations = np.corrcoef(drawn.T)[np.triu_indices(40, 1)]
        assert np.abs(correlations).max() < 5 / math.sqrt(self.DRAWS)
        assert abs(np.corrcoef(drawn[:-1, 0], drawn[1:, 0])[0, 1]) < 4 / math.sqrt(self.DRAWS)

    def test_fixed_batches_are_no_poisson_sample(self):
        sizes = [len(SequentialBatches(40, 4).draw(step, np.random.default_rng(0))) for step in range(100)]
        assert set(sizes) == {4}  # a binomial size would vary: variance 3.6

    def test_all_take_part_with_probability_one(self):
        assert PoissonSampler(5, 1.0).draw(0, np.random.default_rng(0)).tolist() == [0, 1, 2, 3, 4]


def test_batches_in_order_go_round_and_count_their_visits():
    sampler = SequentialBatches(5, 2)
    drawn = [sampler.draw(step, np.random.default_rng(0)).tolist() for step in range(5)]
    assert drawn == [[0, 1], [2, 3], [4, 0], [1, 2], [3, 4]]
    for steps in range(1, 12):
        visits = np.bincount(np.concatenate([sampler.draw(s, np.random.default_rng(0)) for s in range(steps)]))
        assert visits.max() == sampler.visits(steps)


def make(seed=0, sampler=None, participation=None, deviation=0.5, users=6):
    rng = np.random.default_rng(1)
    sizes = rng.integers(1, 5, users)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    pairs = Pairs(*rng.integers(0, WORDS, (2, starts[-1])).astype(np.int32), starts)
    descent = Descent(0.1, 1.0, deviation)
    sampler = sampler or PoissonSampler(users, 0.5)
    return Training(
        pairs, np.ones(WORDS), sampler, descent, dimensions=4, negatives=2, seed=seed, participation=participation
    )


class Stopping:
    """Interrupts the run at a step, and remembers the steps."""

    def __init__(self, sampler, at):
        self.sampler, self.at, self.steps = sampler, at, []

    def draw(self, step, generator):
        if step == self.at:
            raise KeyboardInterrupt
        self.steps.append(step)
        return self.sampler.draw(step, generator)


class TestTraining:
    def test_same_seed_same_vectors(self):
        first, again, other = (make(seed).run(30)[30] for seed in (0, 0, 1))
        np.testing.assert_array_equal(first, again)
        assert (first != other).all()

    def test_goes_on_from_its_state_with_the_same_noise(self, tmp_path):
        whole = make().run(40, [10, 30])
        interrupted = make()
        for _ in range(20):
            if interrupted.step == 10:
                interrupted.publish()
            interrupted.advance()
        interrupted.save(tmp_path)
        resumed = make().run(40, [10, 30], tmp_path)
        assert resumed.keys() == whole.keys() == {10, 30, 40}
        for step, vectors in whole.items():
            np.testing.assert_array_equal(resumed[step], vectors)

    def test_saves_now_and_then_and_takes_it_up_again(self, tmp_path, monkeypatch):
        monkeypatch.setattr(training_module, "SAVE", -1.0)
        stopped = make()
        stopped.sampler = Stopping(stopped.sampler, 8)
        with pytest.raises(KeyboardInterrupt):
            stopped.run(12, [5], tmp_path)
        resumed = make()
        sampler = resumed.sampler = Stopping(resumed.sampler, 100)
        found = resumed.run(12, [5], tmp_path)
        assert sampler.steps == [8, 9, 10, 11]
        for step, vectors in make().run(12, [5]).items():
            np.testing.assert_array_equal(found[step], vectors)

    @pytest.mark.parametrize(
        "fault", ["no archive", "empty", "truncated", "flipped", "of another seed", "without steps"]
    )
    def test_a_state_that_cannot_be_read_whole_changes_nothing(self, tmp_path, fault):
        saved = make(seed=1 if fault == "of another seed" else 0)
        for _ in range(3):
            saved.advance()
        saved.save(tmp_path)
        path = tmp_path / training_module.STATE
        whole = path.read_bytes()
        content = {"no archive": b"no archive", "empty": b"", "truncated": whole[:-200]}.get(fault, whole)
        if fault == "flipped":
            content = whole[:900] + bytes([whole[900] ^ 255]) + whole[901:]
        path.write_bytes(content)
        if fault == "without steps":
            with np.load(path) as file:
                arrays = dict(file)
            arrays["state"] = np.frombuffer(arrays["state"].tobytes().replace(b'"step"', b'"pets"'), np.uint8)
            np.savez(path, **arrays)
        np.testing.assert_array_equal(make().run(5, folder=tmp_path)[5], make().run(5)[5])

    def test_a_checkpoint_is_what_a_shorter_run_publishes(self):
        np.testing.assert_array_equal(make().run(20, [7])[7], make().run(7)[7])

    def test_vectors_that_are_not_finite_are_refused(self):
        training = make()
        training.tables.values[0, 0] = np.nan
        with pytest.raises(FloatingPointError, match="learning rate"):
            training.run(3)


class Recorded(Pairs):
    """Remembers which units were read."""

    def batch(self, units):
        self.__dict__.setdefault("read", []).append(units.tolist())
        return super().batch(units)


class TestPersonalBudgets:
    def trained(self, participation, steps=200):
        training = make(participation=participation, users=4)
        training.pairs = Recorded(training.pairs.centres, training.pairs.contexts, training.pairs.starts)
        training.run(steps)
        return training.pairs.read

    def test_a_user_who_left_is_never_sampled_again(self):
        read = self.trained(RenyiFilter(np.array([0, 5, 50, 200])))
        last = {user: max((step for step, batch in enumerate(read) if user in batch), default=-1) for user in range(4)}
        assert last[0] == -1
        assert last[1] < 5
        assert 40 < last[2] < 50
        assert last[3] > 190

    def test_shares_of_the_paper_are_charged_to_who_takes_part(self):
        participation = PaperAccounting(np.array([0.15, 0.5, 0.5, 10.0]), np.full(200, 0.125), 2.0)
        read = self.trained(participation)
        visits = [sum(user in batch for batch in read) for user in range(4)]
        assert visits[:3] == [3, 8, 8]  # 1/16 a visit, until the budget is reached
        np.testing.assert_allclose(participation.spent, np.array(visits) / 16)
        assert [participation.visits(budget) for budget in (0.15, 0.5, 10.0, 99.0)] == [3, 9, 161, 200]
        assert visits[3] <= 161

    def test_what_was_spent_is_saved(self, tmp_path):
        def participation():
            return PaperAccounting(np.array([0.1, 0.2, 0.3, 0.4, 0.5, 9.0]), np.full(60, 0.04), 2.0)

        whole = make(participation=participation()).run(60)[60]
        begun = make(participation=participation())
        for _ in range(25):
            begun.advance()
        begun.save(tmp_path)
        np.testing.assert_array_equal(make(participation=participation()).run(60, folder=tmp_path)[60], whole)
