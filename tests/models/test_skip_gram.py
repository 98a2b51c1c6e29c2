"""Test private skip-gram: gradients by autograd, late noise, samplers, personal budgets, and resumed runs."""

import itertools
import math

import numpy as np
import pytest
import torch
from scipy import stats

from leakboard.models.skip_gram import descent as training_module
from leakboard.models.skip_gram.descent import Training
from leakboard.models.skip_gram.noisy_tables import Descent, NoiseStream, NoisyTables
from leakboard.models.skip_gram.pairs import Pairs, pairs_of
from leakboard.models.skip_gram.sampling import PaperAccounting, PoissonSampler, RenyiFilter, SequentialBatches

WORDS = 7


def make_tables(dimensions=5, seed=0, words=WORDS, scale=0.7):
    values = np.random.default_rng(seed).normal(0, scale, (2 * words, dimensions)).astype(np.float32)
    return NoisyTables(values, np.zeros(2 * words))


def descend(tables, centres, targets, starts, descent, noise=None):
    arrays = np.array(centres, np.int32), np.array(targets, np.int32), np.array(starts)
    return tables.descend(*arrays, descent, noise or NoiseStream(1))


def by_autograd(start, centres, targets, starts, descent):
    """Return the tables after a step without noise, and the norm of each clipped gradient, in double precision."""
    total, norms = np.zeros(start.shape), []
    half = len(start) // 2
    for first, last in itertools.pairwise([starts[0], starts[-1]] if descent.of_batch else starts):
        table = torch.tensor(start, dtype=torch.float64, requires_grad=True)
        loss = torch.zeros((), dtype=torch.float64)
        for centre, row in zip(centres[first:last], targets[first:last], strict=True):
            scores = table[half + torch.tensor(row)] @ table[int(centre)]
            loss = loss - torch.nn.functional.logsigmoid(scores[0]) - torch.nn.functional.logsigmoid(-scores[1:]).sum()
        gradient = torch.autograd.grad(loss, table)[0].numpy() if last > first else np.zeros(start.shape)
        norms.append(np.linalg.norm(gradient))
        for part in [slice(0, half), slice(half, None)] if descent.of_batch else [slice(None)]:
            norm = np.linalg.norm(gradient[part])
            total[part] += gradient[part] * min(1.0, descent.clipping_norm / norm if norm else 1.0)
    return start - descent.rate * total, np.array(norms)


BATCHES = {
    "one pair a unit": ([0, 1, 2], [[1, 2, 3], [0, 4, 5], [6, 3, 1]], [0, 1, 2, 3]),
    "a negative drawn twice": ([0, 3], [[1, 2, 2], [4, 5, 5]], [0, 1, 2]),
    "the context as a negative": ([0, 3], [[1, 1, 2], [4, 5, 4]], [0, 1, 2]),
    "the centre as its own context": ([2, 2], [[2, 2, 2], [0, 2, 2]], [0, 1, 2]),
    "units of several pairs": ([0, 0, 1, 5, 5], [[1, 2, 2], [1, 0, 3], [0, 0, 6], [5, 2, 1], [0, 1, 2]], [0, 3, 5]),
    "a unit without a pair": ([0, 1], [[1, 2, 3], [0, 2, 2]], [0, 0, 2, 2]),
}


@pytest.mark.parametrize("clipping_norm", [0.3, 5.0, math.inf])
@pytest.mark.parametrize("of_batch", [False, True])
@pytest.mark.parametrize("batch", BATCHES)
def test_clipped_gradients_are_those_of_autograd(batch, clipping_norm, of_batch):
    tables, descent = make_tables(), Descent(0.2, clipping_norm, 0.0, of_batch)
    expected, expected_norms = by_autograd(tables.values, *BATCHES[batch], descent)
    norms = descend(tables, *BATCHES[batch], descent)
    np.testing.assert_allclose(norms, expected_norms, rtol=1e-5)
    np.testing.assert_allclose(tables.values, expected, atol=1e-6)


def test_repeated_rows_clipped_separately_would_fail():
    """The gradients of a word that occurs twice in a unit are added up before the norm is taken."""
    centres, targets, starts = BATCHES["a negative drawn twice"]
    values = make_tables().values
    _, together = by_autograd(values, centres, targets, starts, Descent(0.2, 1.0, 0.0))
    separate = []
    for centre, row in zip(centres, targets, strict=True):
        scores = values[WORDS + np.array(row)] @ values[centre]
        errors = 1 / (1 + np.exp(-scores)) - (np.arange(3) == 0)
        squares = (errors**2).sum() * (values[centre] ** 2).sum()
        squares += ((errors[:, None] * values[WORDS + np.array(row)]) ** 2).sum()
        separate.append(math.sqrt(squares))
    assert (np.abs(together - separate) > 0.01 * together).all()


def test_no_contribution_is_longer_than_the_clipping_norm():
    rng = np.random.default_rng(3)
    for seed in range(200):
        tables = make_tables(8, seed, scale=3)
        before = tables.values.astype(np.float64)
        pairs = rng.integers(1, 6)
        centres, targets = rng.integers(0, WORDS, pairs), rng.integers(0, WORDS, (pairs, 4))
        descend(tables, centres, targets, [0, pairs], Descent(1.0, 0.5, 0.0))
        assert np.linalg.norm(tables.values - before) <= 0.5 * (1 + 1e-5)


class TestLateNoise:
    """Noise drawn when a row is read has the same distribution as noise drawn for every row at every step."""

    STEPS, RUNS = 6, 4_000
    BATCHES = ([0, 1], [[1], [2]]), ([3], [[3]]), ([0], [[2]]), ([4, 4], [[0], [1]]), ([1], [[1]]), ([5], [[0]])

    def run(self, key, *, eager, flushed=True, deviation=0.8):
        """Return the tables published after four and after six steps, flat, float64."""
        tables = make_tables(dimensions=2, seed=9, words=6)
        noise, published = NoiseStream(key), []
        for step, (centres, targets) in enumerate(self.BATCHES):
            if step == 4:
                published.append(tables.flush_noise(noise).ravel())
            descent = Descent(0.5, 1.0, deviation * (1 + step % 3))
            descend(tables, centres, targets, np.arange(len(centres) + 1), descent, noise)
            if eager:
                tables.flush_noise(noise)
        if flushed:
            tables.flush_noise(noise)
        return np.concatenate([*published, tables.values.ravel()]).astype(np.float64)

    def sample(self, offset, **options):
        return np.stack([self.run(offset + key, **options) for key in range(self.RUNS)])

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
        late = self.sample(10**6, eager=False)
        means, covariances, least = self.differences(eager, late)
        assert means < 4.5
        assert covariances < 5.5  # the largest of 630 differences
        assert least > 1e-3 / eager.shape[1]
        # the output vector of row 5 is never read: it receives the noise of six steps in one draw
        expected = sum((0.5 * 0.8 * (1 + step % 3)) ** 2 for step in range(self.STEPS))
        assert np.abs(late[:, -2:].var(0) / expected - 1).max() < 5 * math.sqrt(2 / self.RUNS)

    @pytest.mark.slow
    def test_noise_that_is_never_drawn_is_detected(self, eager):
        _, covariances, least = self.differences(eager, self.sample(10**6, eager=False, flushed=False))
        assert covariances > 20
        assert least < 1e-9

    @pytest.mark.slow
    def test_a_tenth_less_noise_is_detected(self, eager):
        _, covariances, _ = self.differences(eager, self.sample(10**6, eager=False, deviation=0.72))
        assert covariances > 5.5

    def test_without_noise_they_are_equal(self):
        np.testing.assert_array_equal(self.run(1, eager=True, deviation=0.0), self.run(2, eager=False, deviation=0.0))


class TestPairs:
    @pytest.mark.parametrize("window", [1, 2, 3])
    def test_all_neighbours_within_the_window(self, window):
        texts = [["a", "b", "x", "a"], ["b"], [], ["c", "c", "b"]]
        words = ["a", "b", "c"]
        pairs = pairs_of(texts, None, words, window)
        all_pairs = [
            (text[i], text[j])
            for text in texts
            for i in range(len(text))
            for j in range(max(0, i - window), min(len(text), i + window + 1))
            if j != i
        ]
        known = ["x" not in pair for pair in all_pairs]

        def named(centres, contexts):
            return [(words[c], words[o]) for c, o in zip(centres, contexts, strict=True)]

        assert named(pairs.centres, pairs.contexts) == list(itertools.compress(all_pairs, known))
        assert (pairs.units, pairs.units_without_pairs) == (len(all_pairs), known.count(False))
        units = np.array([0, 2, 3, len(all_pairs) - 1])
        centres, contexts, starts = pairs.batch(units)
        assert named(centres, contexts) == [all_pairs[unit] for unit in units if known[unit]]
        assert np.diff(starts).tolist() == [int(known[unit]) for unit in units]

    def test_the_number_of_pairs_does_not_depend_on_the_vocabulary(self):
        texts = [["a", "b", "x", "a"], ["c", "c", "b"]]
        assert {pairs_of(texts, None, words, 1).units for words in ("", "a", "ab", "abc", "abcx")} == {10}
        assert len(pairs_of(texts, None, "", 1).batch(np.arange(10))[0]) == 0

    def test_texts_of_a_unit_are_next_to_each_other(self):
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
    def taken(cls):
        """Return whether each of 40 units was drawn at each step, float64 (steps, 40)."""
        sampler, generator = PoissonSampler(40, 0.1), np.random.default_rng(0)
        taken = np.zeros((cls.DRAWS, 40))
        for step in range(cls.DRAWS):
            taken[step, sampler.draw(step, generator)] = 1
        return taken

    def test_sizes_are_binomial(self, taken):
        sizes = np.bincount(taken.sum(1).astype(int), minlength=13)
        expected = self.DRAWS * stats.binom.pmf(np.arange(12), 40, 0.1)
        observed = np.append(sizes[:12], sizes[12:].sum())
        expected = np.append(expected, self.DRAWS - expected.sum())
        assert stats.chisquare(observed, expected).pvalue > 1e-3

    def test_every_unit_has_the_probability(self, taken):
        assert np.abs(taken.mean(0) - 0.1).max() < 4.5 * math.sqrt(0.09 / self.DRAWS)

    def test_units_and_steps_are_independent(self, taken):
        correlations = np.corrcoef(taken.T)[np.triu_indices(40, 1)]
        assert np.abs(correlations).max() < 5 / math.sqrt(self.DRAWS)
        assert abs(np.corrcoef(taken[:-1, 0], taken[1:, 0])[0, 1]) < 4 / math.sqrt(self.DRAWS)

    def test_all_take_part_with_probability_one(self):
        assert PoissonSampler(5, 1.0).draw(0, np.random.default_rng(0)).tolist() == [0, 1, 2, 3, 4]


def test_batches_in_order_go_round_and_count_their_visits():
    sampler = SequentialBatches(5, 2)
    drawn = [sampler.draw(step, np.random.default_rng(0)).tolist() for step in range(5)]
    assert drawn == [[0, 1], [2, 3], [4, 0], [1, 2], [3, 4]]
    for steps in range(1, 12):
        visits = np.bincount(np.concatenate([sampler.draw(s, np.random.default_rng(0)) for s in range(steps)]))
        assert visits.max() == sampler.visits(steps)


def make_training(seed=0, participation=None, users=6):
    rng = np.random.default_rng(1)
    starts = np.concatenate([[0], np.cumsum(rng.integers(1, 5, users))])
    pairs = Pairs(*rng.integers(0, WORDS, (2, starts[-1])).astype(np.int32), starts)
    options = {"dimensions": 4, "negatives": 2, "seed": seed, "participation": participation}
    return Training(pairs, np.ones(WORDS), PoissonSampler(users, 0.5), Descent(0.1, 1.0, 0.5), **options)


def advanced(training, steps):
    for _ in range(steps):
        training.advance()
    return training


class StoppingSampler:
    """Interrupts the run at a step, and records the steps."""

    def __init__(self, sampler, stop):
        self.sampler, self.stop, self.steps = sampler, stop, []

    def draw(self, step, generator):
        if step == self.stop:
            raise KeyboardInterrupt
        self.steps.append(step)
        return self.sampler.draw(step, generator)


class TestTraining:
    def test_same_seed_same_vectors(self):
        first, again, other_seed = (make_training(seed).run(30)[30] for seed in (0, 0, 1))
        np.testing.assert_array_equal(first, again)
        assert (first != other_seed).all()

    def test_an_interrupted_run_resumes_from_its_last_state(self, tmp_path, monkeypatch):
        monkeypatch.setattr(training_module, "SAVE_SECONDS", -1.0)
        stopped, resumed = make_training(), make_training()
        stopped.sampler = StoppingSampler(stopped.sampler, 20)
        with pytest.raises(KeyboardInterrupt):
            stopped.run(40, [10, 30], tmp_path)
        resumed.sampler = StoppingSampler(resumed.sampler, 100)
        published, expected = resumed.run(40, [10, 30], tmp_path), make_training().run(40, [10, 30])
        assert resumed.sampler.steps == list(range(20, 40))
        assert published.keys() == expected.keys() == {10, 30, 40}
        for step, vectors in expected.items():
            np.testing.assert_array_equal(published[step], vectors)

    @pytest.mark.parametrize(
        "fault", ["no archive", "empty", "truncated", "flipped", "of another seed", "without steps"]
    )
    def test_a_damaged_state_changes_nothing(self, tmp_path, fault):
        advanced(make_training(seed=1 if fault == "of another seed" else 0), 3).save(tmp_path)
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
        np.testing.assert_array_equal(make_training().run(5, folder=tmp_path)[5], make_training().run(5)[5])

    def test_a_checkpoint_is_what_a_shorter_run_publishes(self):
        np.testing.assert_array_equal(make_training().run(20, [7])[7], make_training().run(7)[7])

    def test_vectors_that_are_not_finite_are_refused(self):
        training = make_training()
        training.tables.values[0, 0] = np.nan
        with pytest.raises(FloatingPointError, match="learning rate"):
            training.run(3)


class TestPersonalBudgets:
    def batches(self, participation, monkeypatch):
        """Return the users of each of 200 batches of 4 users, those who left excluded."""
        batches, batch = [], Pairs.batch
        monkeypatch.setattr(
            Pairs, "batch", lambda pairs, units: (batches.append(units.tolist()), batch(pairs, units))[1]
        )
        make_training(participation=participation, users=4).run(200)
        return batches

    def test_a_user_who_left_takes_no_part(self, monkeypatch):
        batches = self.batches(RenyiFilter(np.array([0, 5, 50, 200])), monkeypatch)
        last = [max((step for step, users in enumerate(batches) if user in users), default=-1) for user in range(4)]
        assert last[0] == -1
        assert last[1] < 5
        assert 40 < last[2] < 50
        assert last[3] > 190

    def test_the_shares_of_the_paper_are_charged_to_users_who_take_part(self, monkeypatch):
        participation = PaperAccounting(np.array([0.15, 0.5, 0.5, 10.0]), np.full(200, 0.125), 2.0)
        batches = self.batches(participation, monkeypatch)
        visits = [sum(user in users for users in batches) for user in range(4)]
        assert visits[:3] == [3, 8, 8]  # 1/16 a visit, until the budget is reached
        np.testing.assert_allclose(participation.spent, np.array(visits) / 16)
        assert [participation.visits(budget) for budget in (0.15, 0.5, 10.0, 99.0)] == [3, 9, 161, 200]
        assert visits[3] <= 161

    def test_spent_budgets_are_saved(self, tmp_path):
        def training():
            budgets = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 9.0])
            return make_training(participation=PaperAccounting(budgets, np.full(60, 0.04), 2.0))

        advanced(training(), 25).save(tmp_path)
        np.testing.assert_array_equal(training().run(60, folder=tmp_path)[60], training().run(60)[60])
