"""What a corpus promises."""

from __future__ import annotations

from leakboard.conformance.expect import expect
from leakboard.conformance.presentation import same_elsewhere
from leakboard.conformance.promises import promise
from leakboard.conformance.subjects import Subject
from leakboard.conformance.values import content, digest


@promise("datasets", opens=True)
def loads_three_splits_of_distinct_rows(subject: Subject) -> None:
    """It loads train, dev and test, and no two texts come from one row of the source."""
    splits, load = subject.corpus.splits, subject.cls.load
    expect(set(splits) == {"train", "dev", "test"}, f"its splits are {', '.join(splits)}", load)
    rows = [row for split in splits for row in subject.corpus.texts(split).rows.tolist()]  # type: ignore[union-attr]
    expect(len(set(rows)) == len(rows), f"{len(rows) - len(set(rows))} rows occur twice", load)


@promise("datasets")
def has_a_fingerprint(subject: Subject) -> None:
    """The fingerprint of the same bytes is the same."""
    subject.corpus  # noqa: B018 (without its file there is nothing to identify)
    same = subject.plugin.fingerprint() == subject.example().fingerprint()
    expect(same, "its fingerprint differs each time", subject.cls.fingerprint)


@promise("datasets")
def its_codes_are_of_its_classes(subject: Subject) -> None:
    """Labels and secrets are numbers of the values that the corpus names; entities are absent or present."""
    corpus, load = subject.corpus, subject.cls.load
    for secret in corpus.secrets:
        named = corpus.values(secret.name)
        expect(secret.values == named, f"the values of {secret.name} are {secret.values}, its column's {named}", load)
        known = secret.kind == "attribute" or secret.values == ("absent", "present")
        expect(known, f"the values of the entity {secret.name} are {secret.values}", load)
    columns = [*(secret.name for secret in corpus.secrets), *(["label"] if corpus.has_labels else [])]
    for name in columns:
        for split in corpus.splits if name != "label" else ("train",):
            codes, classes = corpus.column(split, name), len(corpus.values(name))
            low, high = codes.min(), codes.max()
            in_range = 0 <= low <= high < classes
            expect(in_range, f"{name} of {split} has codes from {low} to {high} for {classes} values", load)


@promise("datasets")
def is_the_same_each_time(subject: Subject) -> None:
    """Another process loads the same corpus, to the last bit."""
    same_elsewhere(subject, digest(content(subject.corpus)), subject.cls.load)
