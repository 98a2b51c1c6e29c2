"""Attack the publications of one cell, and return the record of the cell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from leakboard.claims import claim_as_json
from leakboard.data.auxiliary import VICTIMS_SHARE
from leakboard.errors import NotApplicable, RequestError, one_line, plain
from leakboard.execution.resources import provided
from leakboard.interfaces import Corpus
from leakboard.logs import log_progress
from leakboard.metrics.measures import Metric
from leakboard.metrics.row_guesses import RowGuesses
from leakboard.pipeline.attacking import evaluate_attack
from leakboard.pipeline.publications import load_publications
from leakboard.pipeline.records import Record, read_costs
from leakboard.pipeline.results import make_record
from leakboard.pipeline.stages import Stages
from leakboard.pipeline.victim_metrics import Gold, victim_metrics
from leakboard.store import CHECKSUMS, file_checksum
from leakboard.threats.published import Publications
from leakboard.threats.threat import VictimSide, why_no_attack
from leakboard.workspace import resumable


def attack_cell(stages: Stages) -> tuple[Record, list[dict[str, Any]], RowGuesses | None]:
    """Run a cell's attack; return the record, the costs of the stages, and the guesses of each test row.

    A skipped cell has no costs and no guesses.
    """
    job = stages.job
    corpus, auxiliary = stages.sides()[0], stages.attackers_corpus()
    skipped = partial(make_record, job, "skipped", checks=corpus.checks)
    if reason := stages.why_skipped():
        return skipped(reason), [], None
    attack = job.cell.attack.build(stages.registry)
    folder = stages.publications_folder()
    published = load_publications(folder)
    if reason := why_no_attack(attack, corpus, auxiliary, published):
        return skipped(reason), [], None
    side = _victim_side(stages, corpus, auxiliary, published)
    gold = _gold(stages)
    log_progress("attacking")
    unfinished = stages.unfinished_attack
    stages.discard_old(unfinished)
    try:
        of_victim = _victim_metrics(stages, folder, side, gold)
        with stages.in_stage("attack", job.attack_needs) as cost, resumable(unfinished, "attack"):
            result = evaluate_attack(attack, side, of_victim)
    except NotApplicable as error:
        stages.store.discard(unfinished)
        return skipped(one_line(error)), [], None
    stages.store.discard(unfinished)
    record = make_record(
        job,
        "ok",
        code={**job.code, **stages.stored_code},
        secrets=result.secrets,
        threat=attack.threat.name,
        attack_metric=attack.threat.headline,
        test_size=result.test_size,
        claim=claim_as_json(result.claim),
        audited=asdict(result.audited) if result.audited else None,
        details=plain(result.details),
        checks=corpus.checks,
        metrics=result.metrics,
        sentences=[asdict(sentence) for sentence in result.sentences],
    )
    return record, [*read_costs(stages.fitted_folder()), *read_costs(folder), cost], result.guesses


def _victim_side(stages: Stages, corpus: Corpus, auxiliary: Corpus, published: Publications) -> VictimSide:
    job, source = stages.job, stages.job.cell.source
    has_text_classifier = job.conditions.text_classifier and corpus.has_texts
    return VictimSide(
        corpus=corpus,
        auxiliary=auxiliary,
        victim=stages.victim,
        fitted=lru_cache(stages.fitted),
        published=published,
        streams=stages.streams(job.cell.attack.name),
        identity=lambda: file_checksum(stages.fitted_folder() / CHECKSUMS),
        train=stages.shared.shadow,
        victim_share=VICTIMS_SHARE.get(source.regime or "", 1.0),
        external_auxiliary=source.other is not None,
        text_guesses=stages.shared.text_guesses if has_text_classifier else None,
    )


def _gold(stages: Stages) -> Gold | None:
    job, folders = stages.job.gold, stages.folders
    if job is None:
        return None
    with provided(job.needs, folders.device):
        words = load_publications(Stages(job, folders, stages.warn, job.needs).publications_folder()).words
    if words is None:
        raise RequestError(f"gold: {job.cell.victim.label} publishes no words")
    return Gold(words, job.conditions.queries)


def _victim_metrics(stages: Stages, publications: Path, side: VictimSide, gold: Gold | None) -> Sequence[Metric]:
    # no attack changes these metrics, so a process caches them
    job = stages.job
    written = (publications / "about.json").stat()
    gold_key = job.gold.victim_key if job.gold else ""
    cache = _cache_of(publications, written.st_ino, written.st_mtime_ns, gold_key, job.conditions.queries)
    if "metrics" not in cache:
        with provided(job.engine_needs):
            cache["metrics"] = tuple(victim_metrics(side, gold))
    return cache["metrics"]


@lru_cache(maxsize=4)
def _cache_of(*publication: object) -> dict[str, Sequence[Metric]]:
    """Return the cache of a publication, at first empty."""
    return {}
