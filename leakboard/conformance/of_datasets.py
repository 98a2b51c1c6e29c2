"""Check the promises of datasets."""

from __future__ import annotations

from leakboard.conformance.promises import expect, promise
from leakboard.conformance.subjects import Subject
from leakboard.conformance.values import content, digest


@promise("datasets", is_required=True)
def loads_three_splits_of_distinct_rows(subject: Subject) -> None:
    """It loads train, dev and test, and no two texts come from the same row of the source."""
    splits, load = subject.corpus.splits, subject.cls.load
    expect(set(splits) == {"train", "dev", "test"}, f"its splits are {', '.join(splits)}, not train, dev, test", load)
    rows = [row for split in splits for row in subject.corpus.texts(split).rows.tolist()]  # type: ignore[union-attr]
    expect(len(set(rows)) == len(rows), f"{len(rows) - len(set(rows))} rows of the source occur twice", load)


@promise("datasets")
def has_a_stable_fingerprint(subject: Subject) -> None:
    """Two examples that read the same files have the same fingerprint."""
    subject.corpus  # noqa: B018 (without the dataset's file there is nothing to identify)
    same = subject.plugin.fingerprint() == subject.example().fingerprint()
    expect(same, "its fingerprint differs each time", subject.cls.fingerprint)


@promise("datasets")
def codes_are_in_range(subject: Subject) -> None:
    """Labels and secrets are indices into the values that the corpus names; entities are absent or present."""
    corpus, load = subject.corpus, subject.cls.load
    for secret in corpus.secrets:
        values = corpus.values(secret.name)
        expect(secret.values == values, f"the values of {secret.name} are {secret.values}, its column's {values}", load)
        is_known = secret.kind == "attribute" or secret.values == ("absent", "present")
        expect(is_known, f"the values of the entity {secret.name} are {secret.values}", load)
    columns = [*(secret.name for secret in corpus.secrets), *(["label"] if corpus.has_labels else [])]
    for name in columns:
        for split in corpus.splits if name != "label" else ("train",):
            codes, count = corpus.column(split, name), len(corpus.values(name))
            low, high = codes.min(), codes.max()
            message = f"{name} of {split} has codes from {low} to {high} for {count} values"
            expect(0 <= low <= high < count, message, load)


@promise("datasets")
def loads_the_same_each_time(subject: Subject) -> None:
    """Another process loads the same corpus, to the last bit."""
    subject.expect_same_in_subprocess(digest(content(subject.corpus)), subject.cls.load)
