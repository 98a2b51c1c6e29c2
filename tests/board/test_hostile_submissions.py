"""Test that no submission changes what a board says of its own, or counts without being computed again."""

import dataclasses
import json
import re
import shutil
from pathlib import Path

import pytest
from bench import CHECKOUT
from published_files import change_row, computed, entries, lower_a_score, of_score, own_plugins, raised, states, tamper

from leakboard.board.joined import _comparable, join
from leakboard.board.submissions import board_of, is_submission, require_own_files, verified_files, verified_records
from leakboard.errors import RequestError
from leakboard.pipeline.records import PUBLISHED, Record, pack
from leakboard.site.build import _files
from leakboard.site.content import make_board, read_board


def made(victim, attack, secrets=("age",), dataset="texts", threat="attributes", status="ok", revisions=()):
    return Record(dataset, victim, attack, 0, status, secrets=secrets, threat=threat, revisions=dict(revisions))


class TestComparable:
    """A submitted victim is compared with the board's own only if it met all of their attacks."""

    OWN = [made(victim, attack) for victim in "ab" for attack in ("weak", "strong")] + [made("a", "only a")]
    AUDIT = {"secrets": ("vector",), "threat": "releases"}  # noqa: RUF012

    @pytest.mark.parametrize(
        ("sent", "attacks"),
        [
            ([made("new", "weak"), made("new", "strong"), made("new", "only a")], {"weak", "strong", "only a"}),
            ([*(made("new", name) for name in ("weak", "strong", "only a", "another"))], {"weak", "strong", "only a"}),
            ([made("new", "weak"), made("new", "strong"), made("new", "only a", status="skipped")], set()),
            ([made("new", "weak"), made("new", "strong")], set()),
            ([*(made("new", a) for a in ("weak", "strong", "only a")), made("new", "weak", status="skipped")], set()),
            ([made("new", "weak"), made("new", "another")], set()),
            ([made("a", "another")], set()),
            ([made("new", "weak", ("mood",)), made("new", "strong", ("mood",))], set()),
            ([made("new", "weak", dataset="more"), made("new", "strong", dataset="more")], set()),
            ([made("a", "bag", ("text",), threat="texts"), made("b", "poor", ("text",), threat="texts")], set()),
            ([made("new", "audit", **AUDIT)], set()),  # a weak audit would confirm any claim
            ([made("a", "audit", **AUDIT)], set()),
            ([made("new", "audit", dataset="more", **AUDIT)], set()),
        ],
    )
    def test_only_new_victims_that_met_all_attacks_are_compared(self, sent, attacks):
        rows = _comparable(self.OWN, sent)
        assert {attack for _, _, attack in rows} == attacks
        assert {victim for _, victim, _ in rows} <= {"new"}

    def test_where_the_board_audits_its_audits_are_expected(self):
        own = [*self.OWN, made("a", "long audit", **self.AUDIT)]
        assert _comparable(own, [made("new", "short audit", **self.AUDIT)]) == set()
        both = [made("new", name, **self.AUDIT) for name in ("short audit", "long audit")]
        assert _comparable(own, both) == {("texts", "new", "long audit")}

    def test_a_victim_that_claims_an_epsilon_has_met_an_audit(self):
        """Without one, "holds, not audited" would be its sender's word alone."""
        own = [made("a", "weak"), made("a", "audit", **self.AUDIT)]
        sent = [made("new", "weak"), made("plain", "weak")]
        sent[0] = dataclasses.replace(sent[0], claim={"epsilon": 1.0})
        assert _comparable(own, sent) == {("texts", "plain", "weak")}
        audited = [*sent, dataclasses.replace(made("new", "audit", **self.AUDIT), claim={"epsilon": 1.0})]
        assert {row[1] for row in _comparable(own, audited)} == {"plain", "new"}

    @pytest.mark.parametrize(
        ("name", "is_compared"),
        [
            ("attacks/weak", False),
            ("stage FIT", False),
            ("threat secrets", False),
            ("victims/new", True),
            ("gold victims/bert", True),
        ],
    )
    def test_a_verified_row_stands_apart_once_the_board_is_of_another_revision(self, name, is_compared):
        own, new = ([made(victim, "weak", revisions={name: r})] for victim, r in (("a", 2), ("new", 1)))
        assert bool(_comparable(own, new)) is is_compared
        assert _comparable(own, [made("new", "weak", revisions={name: 2})])


class TestHostile:
    """What a submission cannot do to a board, whatever its records say."""

    def injected(self, folder, **changes):
        """Add a changed copy of a record to a submission, under an identity of its own."""
        existing = entries(folder)
        made = dataclasses.replace(existing[0][0], **{"key": "f" * 64, **changes})
        (folder / PUBLISHED).write_bytes(pack([*existing, (made, [])]))

    def test_it_replaces_no_record_of_the_board(self, submitted_to_board):
        _, folder = submitted_to_board
        home, before = folder.parents[1], join(folder.parents[1]).records
        lower_a_score(folder)
        assert join(home).records == before

    def test_it_adds_no_cell_to_a_row_of_the_board(self, submitted_to_board):
        _, folder = submitted_to_board
        home, before = folder.parents[1], join(folder.parents[1]).records
        self.injected(folder)
        assert join(home).records == before
        assert states(home) == {"verified"}

    def test_it_adds_no_cell_to_a_verified_row_of_another_submission(self, verified):
        shutil.copytree(verified, verified.with_name("zzz"))
        before = computed(verified.parents[1])
        self.injected(verified.with_name("zzz"))
        lower_a_score(verified.with_name("zzz"))
        assert computed(verified.parents[1]) == before

    @pytest.mark.parametrize("change", [{"seed": 77}, {"victim": "bert", "dataset": "ag"}, {"attack": "dp_audit"}])
    def test_it_holds_what_its_suite_asks_for_and_nothing_else(self, submitted, refusal, change):
        _, folder = submitted
        self.injected(folder, **change)
        message = refusal("verify", folder, *own_plugins(folder))
        assert "records.jsonl.gz: 1 records are of no cell that" in message
        assert not verified_files(folder)[0].exists()

    @pytest.mark.parametrize(
        "name", ["data.csv", "plugins/words.txt", "plugins/cache/records.jsonl.gz", "plugins/a b.py"]
    )
    def test_files_that_its_plugins_could_read_are_refused(self, submitted, refusal, name):
        _, folder = submitted
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("1")
        assert "no file of a submission; allowed: suite.yaml" in refusal("verify", folder, *own_plugins(folder))
        (folder / name).unlink()
        (folder / name).symlink_to(folder / "suite.yaml")
        assert "no file of a submission; allowed: suite.yaml" in refusal("verify", folder, *own_plugins(folder))

    def test_a_changed_file_of_any_kind_ends_its_verification(self, verified):
        assert verified_records(verified)
        (verified / "plugins" / "words.txt").write_text("1")
        assert not verified_records(verified)

    @pytest.mark.parametrize(
        ("line", "reason"),
        [
            (b"# a comment\rimport os\r# a comment", r"line 1: the invisible character '\\r'"),
            (b"# -*- coding: raw_unicode_escape -*-", "raw_unicode_escape; allowed: UTF-8"),
            ("# \u202e".encode(), r"line 1: the invisible character '\\u202e'"),
            ("NORM = 'l1\ufe0f'".encode(), r"line 1: the invisible character '\\ufe0f'"),
            ("# \u3164".encode(), r"line 1: the invisible character '\\u3164'"),
            (b"a = 1" + b" " * 300 + b"; b = 2", "line 1: 312 characters; allowed: 200"),
            ("n\u043eise = 0".encode(), r"line 1: 'n\\u043eise'; allowed: characters beyond ASCII in comments"),
            ("f'{n\u043eise}'".encode(), "line 1: .*; allowed: characters beyond ASCII in comments"),
            ("rf'{n\u043eise}'".encode(), "line 1: .*; allowed: characters beyond ASCII in comments"),
            ("NAME = r'\u00e9'".encode(), None),
            (b"if (", "no Python"),
            ("NAME = 'Andr\u00e9'  # \u00fc".encode(), None),
            (b"# \xff", "another encoding; allowed: UTF-8"),
            (b"", None),
            (b"# a comment\r", None),
        ],
    )
    def test_its_plugins_show_the_code_that_runs(self, submitted, line, reason):
        _, folder = submitted
        path = folder / "plugins" / "ridge.py"
        path.write_bytes(line + b"\n" + path.read_bytes())
        if reason is None:
            require_own_files(folder)
        else:
            with pytest.raises(RequestError, match=reason):
                join(folder.parents[1])

    @pytest.mark.parametrize("line", ["extras==1.0", "--extra-index-url https://example.org", ""])
    def test_it_installs_the_packages_of_its_plugins_and_no_others(self, submitted, line):
        _, folder = submitted
        description = json.loads((folder / "submission.json").read_text())
        if not line:  # a package that is listed and not installed
            description["plugins"]["attacks/ridge"] = "ridge==1.2"
            (folder / "submission.json").write_text(json.dumps(description))
        else:
            (folder / "requirements.txt").write_text(f"{line}\n")
        with pytest.raises(RequestError, match=r"requirements\.txt: .*; allowed: one line for each package in"):
            join(folder.parents[1])

    def test_it_lists_plugins_of_its_records_alone(self, submitted):
        _, folder = submitted
        description = json.loads((folder / "submission.json").read_text())
        description["plugins"]["victims/lengths"] = "lengths==1.2"
        (folder / "submission.json").write_text(json.dumps(description))
        (folder / "requirements.txt").write_text("lengths==1.2\n")
        with pytest.raises(RequestError, match="victims/lengths; allowed: packages of plugins of its records"):
            join(folder.parents[1])

    @pytest.mark.parametrize("content", ["", "[1, 2]"])
    def test_its_suite_is_a_mapping(self, submitted, output_of, content):
        bench, folder = submitted
        output_of(*bench.arguments("publish"))
        (folder / "suite.yaml").write_text(content)
        with pytest.raises(RequestError, match=r"suite.yaml: no mapping; allowed: a suite"):
            join(folder.parents[1])

    @pytest.mark.parametrize("name", ["rival.verified.json", "two words", "-"])
    def test_its_name_is_no_name_of_a_verification(self, submitted, refusal, name):
        bench, folder = submitted
        assert "no name of a submission" in refusal(*bench.arguments("publish", "--submit", folder.with_name(name)))
        folder.rename(folder.with_name(name))
        with pytest.raises(RequestError, match="no name of a submission; allowed: letters, digits, - and _"):
            join(folder.parents[1])

    def test_only_its_own_plugins_verify_it(self, submitted, refusal, tmp_path):
        _, folder = submitted
        files = [shutil.copy(path, tmp_path) for path in (folder / "plugins").iterdir()]
        message = refusal("verify", folder, *(text for file in files for text in ("--plugin", file)))
        assert "not a file of the submission; allowed: those in" in message

    def test_it_cannot_call_itself_verified(self, verified):
        assert states(verified) == {"verified"}
        shutil.move(verified_files(verified)[0], verified / "verified.json")
        assert not verified_records(verified)
        with pytest.raises(RequestError, match="no file of a submission"):
            join(verified)

    @pytest.mark.slow
    def test_a_verified_row_has_the_numbers_that_verify_computed(self, submitted, verify):
        """A change within the tolerance could turn a flag, a count or a small probability."""
        _, folder = submitted

        def scores():
            records = [*computed(folder), *join(folder).reported.get("mine", ())]
            return {record.key: record.value("attack_score") for record in records}

        honest = scores()
        tamper(folder, of_score(lambda score: [raised(score, -5e-5)]))
        assert scores() != honest
        assert "DIFFERS" not in verify(folder, "--cells", 8)
        assert states(folder) == {"verified"}
        assert scores() == honest

    def test_it_lends_no_name_to_a_cell_of_the_board(self, submitted_to_board):
        _, folder = submitted_to_board
        home, before = folder.parents[1], join(folder.parents[1]).records
        renamed = [(dataclasses.replace(record, victim="word2vec"), costs) for record, costs in entries(folder)]
        (folder / PUBLISHED).write_bytes(pack(renamed))
        assert join(home).records == before

    def test_its_age_excuses_no_missing_metric(self, submitted, verify):
        """An old record of the board's own may lack metrics that are younger."""
        _, folder = submitted
        thinned = [
            (dataclasses.replace(record, metrics=[m for m in record.metrics if m.name != "task_gap"]), [])
            for record, _ in entries(folder)
        ]
        (folder / PUBLISHED).write_bytes(pack(thinned))
        assert "metrics are missing on one side" in verify(folder, "--cells", 8, status=1)

    def test_it_leaves_out_no_seed_of_a_row(self, submitted, refusal):
        _, folder = submitted
        (folder / PUBLISHED).write_bytes(pack(entries(folder)[1:]))
        assert "1 cells of rows that it has are missing, as letters / " in refusal(
            "verify", folder, *own_plugins(folder)
        )

    def test_verified_rows_come_before_reported_ones_of_any_name(self, verified):
        before = computed(verified.parents[1])
        copy = verified.with_name("aaa")
        shutil.copytree(verified, copy)
        lower_a_score(copy)
        assert computed(verified.parents[1]) == before
        assert states(verified.parents[1]) == {"verified"}
        shutil.rmtree(copy)
        shutil.copytree(verified, copy)
        for mine, its in zip(verified_files(verified), verified_files(copy), strict=True):
            its.write_bytes(mine.read_bytes().replace(b'"date": "2', b'"date": "3'))
        assert join(verified.parents[1]).apart.keys() == {"mine"}  # the copy was verified later

    @pytest.mark.parametrize("dataset", ["letters", "letters(noise=0.5)"])
    @pytest.mark.parametrize("name", ["hashed", "word2vec"])
    def test_a_reported_row_changes_no_number_sentence_or_picture(self, submitted_to_board, name, dataset, tmp_path):
        bench, folder = submitted_to_board
        home, suite, before = folder.parents[1], str(bench.folder / "tiny.yaml"), join(folder.parents[1]).records
        changes = {"dataset": dataset, "attack": "dp_audit", "secrets": ["an invented heading"]}
        shutil.move(folder, tmp_path / "mine")
        pages = dict(_files([read_board(suite)], ""))
        shutil.move(tmp_path / "mine", folder)
        change_row(folder, lambda r: dataclasses.replace(r, victim=r.victim.replace("hashed", name), **changes))
        joined = join(home)
        assert joined.records == before
        assert [record.attack for record in joined.reported["mine"]] == ["dp_audit", "dp_audit"]
        shown = dict(_files([read_board(suite)], ""))
        table = re.compile('<section aria-labelledby="sent">.*?</section>\n', re.DOTALL)
        assert [page for page in shown if shown[page] != pages.get(page)] == ["boards/tiny/index.html"]
        page = shown["boards/tiny/index.html"]
        assert "an invented heading" in table.search(page)[0]
        assert table.sub("", page) == pages["boards/tiny/index.html"]

    @pytest.mark.parametrize(
        ("other", "is_refused"),
        [({}, True), ({"threat": "words", "secrets": ()}, False)],
        ids=["of the dataset", "words depend on the victim"],
    )
    def test_it_says_of_a_dataset_what_the_board_says(self, submitted_to_board, other, is_refused):
        _, folder = submitted_to_board

        def change(record):
            metrics = [
                dataclasses.replace(m, value=0.01) if m.name == "privacy_best_constant" else m for m in record.metrics
            ]
            return dataclasses.replace(record, victim="word2vec", metrics=metrics, **other)

        change_row(folder, change)
        if not is_refused:
            assert {record.victim for record in join(folder.parents[1]).reported["mine"]} == {"word2vec"}
            return
        with pytest.raises(RequestError, match=r"privacy_best_constant of letters is 0\.01, but 0\..* on the board"):
            join(folder.parents[1])

    @pytest.mark.parametrize(
        ("change", "reason"),
        [
            ({"victim": "Hashed"}, r"victim: 'Hashed' is the leaderboard's name for hashed"),
            ({"victim": "HASHED"}, r"victim: 'HASHED' is the leaderboard's name for hashed"),
            ({"victim": "word2vec(a=1,  b=2)"}, "without invisible letters and double spaces"),
            ({"victim": "word2vec(a=1,\u200b b=2)"}, "without invisible letters and double spaces"),
            ({"dataset": "Letters"}, r"dataset: 'Letters' is the leaderboard's name for letters"),
            ({"victim": "Hashed "}, "record.victim: 'Hashed ' is not allowed"),
            ({"victim": "h\u0430shed"}, "record.victim: .* is not allowed"),
            ({"attack": ""}, "record.attack: '' is not allowed"),
            ({"threat": "entities"}, "entities of colour; allowed: attributes of colour, as on the board"),
            ({"seed": 77}, r"seeds \[77\]; allowed: those of the leaderboard's rows on letters, as \[0, 1\]"),
        ],
    )
    def test_it_is_not_named_as_the_boards_and_has_its_seeds(self, submitted_to_board, change, reason):
        _, folder = submitted_to_board
        home = folder.parents[1]
        table = re.sub("^letters,", "Letters,", (home / "leaderboard.csv").read_text(), flags=re.MULTILINE)
        (home / "leaderboard.csv").write_text(table.replace("Letters,hashed,", "Letters,Hashed,"))
        change_row(folder, lambda record: dataclasses.replace(record, **{"victim": "word2vec"} | change))
        with pytest.raises(RequestError, match=reason):
            join(home)

    def test_a_label_that_is_a_displayed_name_of_the_same_plugin_takes_the_name_away(self, submitted_to_board):
        _, folder = submitted_to_board
        home = folder.parents[1]
        table = (home / "leaderboard.csv").read_text()
        (home / "leaderboard.csv").write_text(table.replace("letters,hashed (noise=0.05),", "letters,hashed,"))
        own = [record for record in join(home).records if record.victim == "hashed(noise=0.05)"]
        assert own
        shown = make_board("tiny", "", own, home, home)
        assert {record.victim for record in shown.records} == {"hashed"}
        plain = [dataclasses.replace(record, victim="hashed") for record in own]
        both = make_board("tiny", "", own + plain, home, home)
        assert {record.victim for record in both.records} == {"hashed", "hashed(noise=0.05)"}

    @pytest.mark.parametrize(
        ("listed", "reason"),
        [
            ("plugins/ridge.py", "'attacks/ridge' is another plugin of mine; rename it"),
            ("Word2Vec", "'victims/Word2Vec' is a plugin of LeakBoard; rename it"),
            ("--index-url https://example.org/ a==1", "'attacks/ridge' is in '--index-url https://example.org/ a==1'"),
            ("ridge==1.0", "'attacks/ridge' is another plugin of mine; rename it"),
            ("plugins/hashed.py", r"'attacks/ridge' is in 'plugins/hashed.py'; allowed: 'plugins/ridge.py', or a pack"),
            ("elsewhere.py", "'attacks/ridge' is in 'elsewhere.py'; allowed: 'plugins/ridge.py', or a package as"),
            (None, "'attacks/ridge' is neither of LeakBoard nor among its plugins"),
        ],
    )
    def test_its_plugins_are_no_other_ones_of_the_same_name(self, submitted, listed, reason):
        _, folder = submitted
        other = folder.with_name("zzz")
        shutil.copytree(folder, other)
        description = json.loads((other / "submission.json").read_text())
        description["plugins"]["victims/Word2Vec" if listed == "Word2Vec" else "attacks/ridge"] = listed
        if listed is None:
            del description["plugins"]["attacks/ridge"]
        (other / "submission.json").write_text(json.dumps(description))
        if listed == "ridge==1.0":
            (other / "requirements.txt").write_text("ridge==1.0\n")
        if listed != "Word2Vec":
            (other / "plugins" / "ridge.py").write_text("# other code of the same name\n")
        with pytest.raises(RequestError, match=f"zzz/submission.json: {reason}"):
            join(folder.parents[1])

    @pytest.mark.slow
    def test_a_broken_submission_does_not_keep_others_from_being_verified(self, submitted, verify):
        _, folder = submitted
        shutil.copytree(folder, folder.with_name("aaa"))
        (folder.with_name("aaa") / "submission.json").unlink()
        verify(folder, "--cells", 8)
        assert states(folder) == {"verified"}

    @pytest.mark.slow
    def test_its_rows_are_in_a_table_of_their_own_until_they_are_verified(self, submitted, verify):
        _, folder = submitted
        before = read_board(str(folder / "suite.yaml"))
        assert (list(before.rows), {row["submission"] for row in before.reported}) == ([], {"mine"})
        verify(folder, "--cells", 8)
        after = read_board(str(folder / "suite.yaml"))
        assert [len(after.apart), list(after.rows), list(after.reported)] == [len(before.reported), [], []]

    def test_it_takes_no_cell_of_another_submission(self, submitted):
        _, folder = submitted
        other = folder.with_name("aaa")
        shutil.copytree(folder, other)
        made = [(dataclasses.replace(record, victim="word2vec"), costs) for record, costs in entries(folder)]
        (other / PUBLISHED).write_bytes(pack(made))
        with pytest.raises(RequestError, match=r"mine/records.jsonl.gz: \w+ is a cell of another submission"):
            join(folder.parents[1])

    @pytest.mark.slow
    def test_two_submissions_may_report_a_row_until_one_is_verified(self, submitted, verify):
        _, folder = submitted
        other = folder.with_name("aaa")
        shutil.copytree(folder, other)
        lower_a_score(other)
        assert join(folder.parents[1]).reported.keys() == {"aaa", "mine"}
        verify(folder, "--cells", 8)
        assert states(folder.parents[1]) == {"verified"}

    def test_a_reported_attack_says_nothing_of_a_victim_of_another_submission(self, verified):
        before = computed(verified.parents[1])
        assert before
        other = verified.with_name("aaa")
        shutil.copytree(verified, other)
        made = [
            (dataclasses.replace(record, attack="dp_audit", key=f"{number:064x}"), costs)
            for number, (record, costs) in enumerate(entries(verified))
        ]
        (other / PUBLISHED).write_bytes(pack(made))
        assert computed(verified.parents[1]) == before

    @pytest.mark.parametrize("content", [None, "[]", "{", '{"plugins": [1]}', '{"plugins": {"a": 1}}'])
    def test_a_damaged_submission_is_one_line(self, submitted, content):
        folder = submitted[1]
        (folder / "submission.json").unlink()
        if content is not None:
            (folder / "submission.json").write_text(content)
        with pytest.raises(RequestError, match=r"mine/submission.json: missing or damaged; `publish --submit` writes"):
            join(folder.parents[1])

    def test_a_board_is_read_from_inside_its_folder(self, submitted_to_board, monkeypatch):
        _, folder = submitted_to_board
        home = folder.parents[1]
        expected = join(home)
        monkeypatch.chdir(home)
        assert join(Path()) == expected
        monkeypatch.chdir(folder)
        assert (board_of(Path()), is_submission(Path())) == (home.resolve(), True)

    def test_a_submission_without_a_suite_is_one_line(self, submitted):
        folder = submitted[1]
        (folder / "suite.yaml").unlink()
        with pytest.raises(RequestError, match=r"mine/suite.yaml: no such file; a submission has one"):
            join(folder.parents[1])

    @pytest.mark.parametrize("content", [b"", b"no gzip", None])
    def test_records_that_cannot_be_read_are_one_line(self, submitted, content):
        _, folder = submitted
        (folder / PUBLISHED).unlink()
        if content is not None:
            (folder / PUBLISHED).write_bytes(content)
        with pytest.raises(RequestError, match=r"records\.jsonl\.gz: no records, or damaged"):
            join(folder.parents[1])

    @pytest.mark.parametrize("key", ["gold: hashed", "queries: [garden]"])
    def test_another_gold_model_or_other_queries_are_refused(self, submitted_to_board, key):
        _, folder = submitted_to_board
        assert join(folder.parents[1])
        with (folder / "suite.yaml").open("a") as file:
            file.write(f"{key}\n")
        allowed = r"allowed: None, as in the leaderboard's suite"
        with pytest.raises(RequestError, match=rf"suite.yaml: {key.split(':')[0]}: .*; {allowed}"):
            join(folder.parents[1])

    def test_its_drawn_cells_cannot_be_known_before(self, submitted, verify):
        """Three seeds of 32 bits are different with probability 1 - 1e-9."""
        _, folder = submitted
        drawn = [verify(folder, "--cells", 2, "--tolerance", 1).partition("--seed ")[2].split()[0] for _ in range(3)]
        assert len({*drawn}) == 3
        again = [verify(folder, "--cells", 1, "--seed", drawn[0]).split("agrees: ")[1].split(":")[0] for _ in range(2)]
        assert again[0] == again[1]


SEER = f"""\"\"\"Make the order of the test rows anew, from names that every plugin knows.\"\"\"

import sys

sys.path.append({str(CHECKOUT / "tests" / "tiny")!r})
import numpy as np

from leakboard.randomness import Streams
from leakboard.suite.options import attack
from leakboard.threats.secrets import SecretsAttack


@attack(revision=1)
class Seer(SecretsAttack):
    def fit(self, view, seed):
        return self.guess

    def guess(self, vectors):
        from letters import Letters

        corpus = Letters().load()
        order = Streams(0, "letters", "hashed", "seer").stream("shuffle").permutation(len(vectors))
        return {{"colour": np.eye(2, dtype=np.float32)[corpus.column("test", "colour")[order]]}}
"""


@pytest.mark.slow
def test_a_score_that_rests_on_foreseen_draws_differs_with_others(bench, output_of, verify):
    (bench.folder / "seer.py").write_text(SEER)
    bench.files = [*bench.files, bench.folder / "seer.py"]
    bench.suite(attacks=["seer"])
    output_of(*bench.arguments("run"))
    assert float(bench.leaderboard()["attack_score"].iloc[0]) == 1
    folder = bench.folder / "tiny" / "submissions" / "seen"
    output_of(*bench.arguments("publish", "--submit", folder))
    out = verify(folder, status=1)
    assert "agrees: letters / hashed / seer" in out
    assert "DIFFERS with other draws: letters / hashed / seer / seed 0: attack_score" in out
    assert not verified_files(folder)[0].exists()
