"""Test what the front page leads with, and the comparison of encoders across boards."""

import dataclasses

import pytest
from made_records import record

from leakboard.site import front
from leakboard.site.across import judged
from leakboard.site.board_pages import board_page, victims
from leakboard.site.claim_notes import dropout_note
from leakboard.site.content import make_board
from leakboard.site.encoders import RULE, about_people, answer, comparisons, encoder_pages
from leakboard.site.needs import needs_of
from leakboard.site.views import views
from leakboard.threats.threat import threat_named

LAST_LAYER = "bert(epochs=3)"
CLAIM = {
    "about": "release",
    "epsilon": 5.0,
    "proved": 5.0,
    "delta": 0.0,
    "unit": "word",
    "observations": 1,
    "caveat": "",
}


@pytest.fixture
def board(tmp_path):
    """Return a function that gives a board of these records, all on AG with copies and about entities."""

    def made(name, *records):
        return make_board(name, "", records, tmp_path, tmp_path)

    return made


def on_ag(victim, **fields):
    return record(victim, dataset="ag(duplicates=keep)", threat="entities", attack_metric="f1", **fields)


@pytest.fixture
def boards(board):
    undefended = on_ag(LAST_LAYER, accuracy=0.8, privacy=0.1)
    dpnr = on_ag(f"dpnr(encoder={LAST_LAYER}, epsilon=5.0)", accuracy=0.79, privacy=0.3)
    dropout = on_ag(f"dpnr(encoder={LAST_LAYER}, epsilon=5.0, mu=0.5)", accuracy=0.79, privacy=0.4)
    return [board("one", undefended, dpnr, dropout), board("two", undefended, on_ag("lstm", accuracy=0.7, privacy=0.2))]


def tables(*boards):
    return judged({board.name: views(board) for board in boards})


def headline(board):
    return front.headline(board, tables(board)[board.name])


class TestFront:
    def test_the_figure_has_the_encoder_and_its_defences_of_all_boards_once(self, boards):
        shown = front.figure(tables(*boards))
        names = [row["victim_options"] for row in shown["view"].rows]
        assert names == [f"dpnr(encoder={LAST_LAYER}, epsilon=5.0)", LAST_LAYER]
        assert shown["view"].rows[0]["slug"].startswith("boards/one/dpnr-")
        assert shown["message"].startswith(
            "Privacy is 1 minus the attacker's F1; guessing without the vectors leaves 0.50. Without a defence it is "
            "0.10. Within 2 points of task accuracy dpnr"
        )

    def test_what_several_publications_leave_is_told_with_the_headline(self, board):
        once = on_ag(f"dpnr(encoder={LAST_LAYER}, epsilon=5.0)", accuracy=0.79, privacy=0.3)
        often = on_ag(f"dpnr(encoder={LAST_LAYER}, epsilon=5.0)", attack="sixteen", accuracy=0.79, privacy=0.16)
        often = dataclasses.replace(often, claim={**CLAIM, "observations": 16})
        made = board("one", on_ag(LAST_LAYER, accuracy=0.8, privacy=0.1), once, often)
        assert "keeps most: 0.30 (0.16 if a text is published 16 times). " in front.figure(tables(made))["message"]
        row = next(row for row in views(made)[0].rows if "dpnr" in row["victim_options"])
        assert (row["attacks"], row["repeated"]) == (1, "0.16 if a text is published 16 times")

    def test_more_publications_that_help_no_attack_are_not_told(self, board):
        victim = f"dpnr(encoder={LAST_LAYER}, epsilon=5.0)"
        often = on_ag(victim, attack="sixteen", accuracy=0.79, privacy=0.35)
        often = dataclasses.replace(often, claim={**CLAIM, "observations": 16})
        made = board("one", on_ag(LAST_LAYER, accuracy=0.8), on_ag(victim, accuracy=0.79, privacy=0.3), often)
        row = next(row for row in views(made)[0].rows if "dpnr" in row["victim_options"])
        assert row["repeated"] == ""

    def test_without_its_dataset_there_is_no_figure(self, board):
        assert front.figure(tables(board("b", record("a"), record("c")))) is None

    def test_a_card_has_the_privacy_at_a_small_loss(self, boards, board):
        assert headline(boards[0]).number == "0.40"
        no_better = board("b", on_ag("net", privacy=0.1), on_ag("defence(encoder=net)", privacy=0.11))
        assert headline(no_better).number == "0.10"
        assert "no defence here keeps measurably more" in headline(no_better).text

    def test_a_card_says_what_a_loss_is_counted_from(self, board):
        shown = headline(board("one", on_ag("lstm", accuracy=0.8, privacy=0.2), on_ag("bert", accuracy=0.7)))
        assert shown.text.endswith(
            "at a loss of at most 2 points of task accuracy, counted from lstm (ag(duplicates=keep))."
        )

    def test_a_card_of_another_threat_has_the_highest_score(self, board):
        fields = {"threat": "words", "attack_metric": "recall@5", "secrets": ("words",)}
        made = board("b", record("a", privacy=0.9, **fields), record("c", privacy=0.7, **fields))
        assert headline(made).number == "0.30"
        assert headline(made).text.startswith("given away by the strongest attack (")
        assert "c, words: which word is this vector (data)" in headline(made).text

    def test_a_board_of_links_counts_stores_that_are_linked(self, board):
        def store(name, score):
            made = record(name, "linking", secrets=("text",), privacy=1 - score, score=score)
            return dataclasses.replace(made, threat="linking", attack_metric="linked_at_1_percent_false_links")

        made = headline(board("b", store("a", 1.0), store("b", 0.99), store("c", 0.98)))
        assert made.number == "2 of 3"
        assert made.text == "stores with at least 99 % of the vectors linked to their texts (data, 0 known pairs)"


class TestOtherBoards:
    """What a board's page says of other boards with the same texts and encoder."""

    @pytest.fixture
    def sections(self, boards):
        """Return a function that gives the only section of a board's page."""

        def section(i, audited=None):
            made = [boards[0] if audited is None else audited, boards[1]]
            (one,) = board_page(made[i], tables=tables(*made))["sections"]
            return one

        return section

    def test_a_defence_that_keeps_more_is_named_where_it_is_missing(self, sections):
        assert sections(0)["elsewhere"] is None
        other = sections(1)["elsewhere"]
        assert (other["board"], other["victim_options"]) == ("one", f"dpnr(encoder={LAST_LAYER}, epsilon=5.0)")
        assert other["slug"].startswith("boards/one/dpnr-")

    def test_boards_with_other_secrets_are_not_compared(self, boards, board):
        better = on_ag(f"dpnr(encoder={LAST_LAYER}, epsilon=5.0)", accuracy=0.79, privacy=0.4, secrets=("age",))
        other = board("three", on_ag(LAST_LAYER, accuracy=0.8, privacy=0.1, secrets=("age",)), better)
        (section,) = board_page(boards[1], tables=tables(boards[1], other))["sections"]
        assert section["elsewhere"] is None

    def test_a_verdict_on_another_claim_of_the_victim_is_not_taken_over(self, board):
        victim = f"dpnr(encoder={LAST_LAYER}, epsilon=5.0)"
        held = board("one", on_ag(LAST_LAYER), dataclasses.replace(on_ag(victim), claim=CLAIM))
        larger = {**CLAIM, "epsilon": 7.0, "proved": 9.0}
        unproven = board("two", on_ag(LAST_LAYER), dataclasses.replace(on_ag(victim), claim=larger))
        (section,) = board_page(held, tables=tables(held, unproven))["sections"]
        assert {row["verdict"] for row in section["rows"]} == {"holds, not audited", ""}

    def test_a_page_alone_compares_with_no_board(self, boards):
        (section,) = board_page(boards[1])["sections"]
        assert section["elsewhere"] is None

    def test_a_claim_has_the_worst_verdict_of_all_boards(self, board):
        victim = f"dpnr(encoder={LAST_LAYER}, epsilon=5.0)"
        held, unproven = (
            board(name, on_ag(LAST_LAYER), dataclasses.replace(on_ag(victim), claim={**CLAIM, "proved": proved}))
            for name, proved in (("one", 5.0), ("two", 9.0))
        )
        for here, where in ((held, "on the board two"), (unproven, "not refuted here")):
            (section,) = board_page(here, tables=tables(held, unproven))["sections"]
            shown = {row["victim_options"]: (row["verdict"], row["verdict_small"]) for row in section["rows"]}
            assert shown == {victim: ("unproven", where), LAST_LAYER: ("", "no claim")}
        (alone,) = board_page(held)["sections"]
        assert {row["verdict"] for row in alone["rows"]} == {"holds, not audited", ""}


class TestEncoders:
    def test_encoders_are_compared_across_boards(self, boards):
        (one,) = comparisons(boards)
        assert [(row["encoder"], row["board"]) for row in one.rows] == [
            ("LSTM", "two"),
            ("MiniLM", "one"),
            ("MiniLM", "two"),
        ]
        assert one.sentence == (
            "ag(duplicates=keep), gender: LSTM leaks least (privacy 0.20 of at most 0.50), MiniLM most (0.10)."
        )

    def test_encoders_whose_intervals_overlap_are_not_told_apart(self, board):
        (one,) = comparisons([board("b", on_ag(LAST_LAYER, privacy=0.1), on_ag("lstm", privacy=0.12))])
        assert one.sentence.endswith("no difference is seen between LSTM and MiniLM (privacy 0.12 of at most 0.50).")

    def test_the_answer_counts_each_comparison_once(self, boards, board):
        (decided,) = comparisons(boards)
        (undecided,) = comparisons([board("b", on_ag(LAST_LAYER, privacy=0.1), on_ag("lstm", privacy=0.12))])
        bag = on_ag("embedding_bag", privacy=0.12)
        (tied,) = comparisons([board("b", on_ag("word2vec", privacy=0.4), on_ag("lstm", privacy=0.42), bag)])
        assert tied.leaders == ["LSTM", "Word2Vec"]
        assert answer([decided]) == f"Of 1 comparison: one encoder leaks least in 1 (LSTM in 1). {RULE}"
        assert answer([decided, decided, tied, undecided]) == (
            "Of 4 comparisons: one encoder leaks least in 2 (LSTM in 2); "
            f"several tie for the least in 1 (LSTM and Word2Vec in 1); no difference is seen in 1. {RULE}"
        )
        assert answer([undecided]) == answer([]) == ""

    @pytest.mark.parametrize(("gain", "is_said"), [(0.95, True), (0.5, False)])
    def test_pages_say_where_every_encoder_gives_away_who_is_mentioned(self, boards, gain, is_said):
        (one,) = comparisons(boards)
        rows = [{**row, "attack_advantage": gain if row["encoder"] == "LSTM" else 0.99} for row in one.rows]
        text = about_people([dataclasses.replace(one, rows=rows)])
        assert bool(text) == is_said
        assert not is_said or text.startswith("On ag(duplicates=keep) every encoder gives away nearly all")
        assert not is_said or text.endswith("on ag(duplicates=keep): 0.95 to 0.99.")

    def test_the_page_links_boards_that_read_texts(self, boards, board):
        read = record("lstm", threat="texts", attack_metric="token_f1", secrets=("text",))
        shown = encoder_pages([*boards, board("reading", read)])["index.html"]["text"]
        assert "(../boards/reading/index.html)" in shown
        assert "For whole texts" not in encoder_pages(boards)["index.html"]["text"]

    def test_where_encoders_differ_it_depends_on_the_secret(self, board):
        rows = [on_ag(LAST_LAYER, privacy=0.1), on_ag("lstm", privacy=0.3)]
        swapped = [on_ag(LAST_LAYER, privacy=0.3), on_ag("lstm", privacy=0.1)]
        made = [one for records in (rows, swapped) for one in comparisons([board("b", *records)])]
        assert answer(made).startswith("It depends on the secret. Of 2 comparisons: one encoder leaks least in 2 (")

    def test_a_grid_has_a_cell_for_each_encoder_and_marks_those_that_leak_least(self, boards, board):
        read = [
            record(name, threat="texts", attack_metric="token_f1", secrets=("text",)) for name in ("lstm", LAST_LAYER)
        ]
        shown = encoder_pages([*boards, board("reading", *read)])["index.html"]["grid"]
        assert [name for name, _ in shown.encoders] == ["LSTM", "MiniLM"]
        (people, words) = shown.parts
        assert people.title == "gender"
        ((dataset, (lstm, minilm)),) = people.comparisons
        assert dataset == "ag(duplicates=keep)"
        assert (lstm.leads, minilm.leads) == (True, False)
        assert lstm.advantage < minilm.advantage
        ((_, cells),) = words.comparisons
        assert not any(cell.leads for cell in cells)

    def test_an_encoder_that_was_not_attacked_has_an_empty_cell(self, boards, board):
        bag = board("three", *(on_ag(name, secrets=("age",)) for name in ("lstm", "embedding_bag")))
        shown = encoder_pages([*boards, bag])["index.html"]["grid"]
        assert [name for name, _ in shown.encoders] == ["LSTM", "MiniLM", "embedding bag"]
        filled = [[cell is not None for cell in cells] for part in shown.parts for _, cells in part.comparisons]
        assert sorted(filled) == [[True, False, True], [True, True, False]]

    def test_datasets_of_one_name_are_told_apart_by_their_boards(self, tmp_path):
        def on_reviews(users):
            label = f"generated_reviews(users={users})"
            return [dataclasses.replace(on_ag(victim), dataset=label) for victim in ("lstm", LAST_LAYER)]

        made = [
            make_board(name, "", on_reviews(users), tmp_path, tmp_path, common=True)
            for name, users in (("one", 300), ("two", 600))
        ]
        assert [one.dataset for one in comparisons(made)] == ["generated reviews (one)", "generated reviews (two)"]

    def test_one_encoder_is_not_compared(self, board):
        (one,) = comparisons([board("b", on_ag("lstm"))])
        assert one.sentence == ""

    def test_an_encoder_has_a_page_with_its_defences(self, boards):
        pages = encoder_pages(boards)
        (minilm,) = [page for name, page in pages.items() if name.startswith("minilm-")]
        captions = [table["caption"] for table in minilm["listings"]]
        assert captions == [
            "ag(duplicates=keep), gender",
            "Defences of MiniLM, on the board one: ag(duplicates=keep), gender",
        ]
        assert len(minilm["listings"][1]["rows"]) == 2
        assert len(pages) == 3


def test_an_attack_tells_what_it_had_on_all_victims():
    rows = [
        {"threat": "words", "seconds": seconds, "known_pairs": known, "queries": 0, "observations": None}
        for seconds, known in ((3.0, 1200), (300.0, 1500))
    ]
    facts = dict(needs_of(rows))
    assert facts.pop("it sees").startswith("the published vectors of words")
    assert facts == {"known pairs": "1,200 to 1,500", "queries": "0", "time, one seed": "3 s to 5 min"}
    assert "known pairs" not in dict(needs_of([{"threat": "words", "seconds": None}]))


@pytest.mark.parametrize(
    "name",
    [
        *("attributes", "entities", "texts", "words", "membership", "linking", "presence", "releases", "canaries"),
        "sanitised_words",
    ],
)
def test_every_threat_says_what_its_attackers_see(name):
    assert threat_named(name).sees


def test_rows_name_the_paper_of_their_victim(boards):
    (section,) = board_page(boards[0])["sections"]
    papers = {row["victim_options"]: row["paper"] for row in section["rows"]}
    assert papers[f"dpnr(encoder={LAST_LAYER}, epsilon=5.0)"].title == "Lyu, He and Li 2020"


class TestClaims:
    """What pages say of claims that a number alone leaves unclear."""

    @pytest.mark.parametrize(
        ("mu", "claimed", "expected"),
        [(0.8, 0.29539453, "epsilon 1 and mu 0.8 give 0.295."), (0.8, 1.0, ""), (0, 1.0, "")],
    )
    def test_word_dropout_explains_the_claims_that_it_lowers(self, mu, claimed, expected):
        note = dropout_note(f"dpnr(encoder=lstm, epsilon=1.0, mu={mu})", claimed)
        assert note.endswith(expected)
        assert bool(note) == bool(expected)

    def test_pages_of_board_and_victim_say_where_the_claim_is_from(self, board):
        claim = {**CLAIM, "epsilon": 0.29539453, "proved": 0.29539453}
        hidden = dataclasses.replace(on_ag("dpnr(encoder=lstm, epsilon=1.0, mu=0.8)"), claim=claim)
        made = board("one", on_ag("lstm"), hidden)
        (section,) = board_page(made)["sections"]
        assert [note.split(".")[0] for note in section["claim_notes"]] == [
            "Word dropout hides each word with the probability mu"
        ]
        texts = {victim["name"]: victim["claim_texts"] for victim in victims(made)}
        assert texts.pop("lstm") == []
        (claim_texts,) = texts.values()
        assert any("mu 0.8 give 0.295" in text for text in claim_texts)

    @pytest.mark.parametrize(
        ("exact", "proved", "expected"),
        [
            (None, 4.0, []),
            (None, 9.0, ["no audit refuted the claim"]),
            (3.0, 9.0, ["about the words of this board", "no compared pair"]),
        ],
    )
    def test_claims_that_are_not_proved_are_explained(self, board, exact, proved, expected):
        claim = {**CLAIM, "epsilon": 4.0, "proved": proved, "exact": exact}
        (section,) = board_page(board("one", dataclasses.replace(on_ag("lstm"), claim=claim)))["sections"]
        text = " ".join(section["claim_notes"])
        assert bool(text) == bool(expected)
        assert all(part in text for part in expected)
