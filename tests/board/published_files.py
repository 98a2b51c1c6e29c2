"""Read and change the published records of a folder."""

import dataclasses
import gzip
import json

from leakboard.board.joined import join, row_of
from leakboard.pipeline.records import PUBLISHED, pack, read_published


def published_lines(folder):
    """Return the published records, one line of JSON each."""
    return gzip.decompress((folder / PUBLISHED).read_bytes()).decode().splitlines()


def entries(folder):
    """Return the published records with their costs."""
    return list(read_published(folder, [json.loads(line)["key"] for line in published_lines(folder)]).values())


def of_score(change):
    """Return a change of the attack's score alone; ``change`` returns the metrics that replace it."""
    return lambda metric: change(metric) if metric.name == "attack_score" else [metric]


def tamper(folder, change, gpu="", processor=""):
    """Replace each metric of one record by the metrics that ``change`` returns; set the hardware and the checksum."""
    changed = []
    for record, costs in entries(folder):
        if (record.victim, record.attack, record.seed) == ("hashed", "ridge", 1):
            record = dataclasses.replace(record, metrics=[m for metric in record.metrics for m in change(metric)])
            for cost in costs:
                cost["device"] = gpu if gpu and cost["stage"] == "fit" else cost["device"]
                machine = cost["environment"]["machine"]
                machine["processor"] = processor or machine["processor"]
        changed.append((record, costs))
    (folder / PUBLISHED).write_bytes(pack(changed))


def change_row(folder, change):
    """Leave one scored row in the published records, each as ``change`` returns it, under an identity of its own."""
    row = next(row_of(record) for record, _ in entries(folder) if record.value("privacy_best_constant"))
    of_row = [(record, costs) for record, costs in entries(folder) if row_of(record) == row]
    changed = [
        (dataclasses.replace(change(record), key=f"{number:064x}"), costs)
        for number, (record, costs) in enumerate(of_row)
    ]
    (folder / PUBLISHED).write_bytes(pack(changed))


def raised(metric, by):
    """Return the metric with its value and interval raised."""
    parts = {part: getattr(metric, part) for part in ("value", "low", "high")}
    return dataclasses.replace(metric, **{part: value + by for part, value in parts.items() if value is not None})


def computed(folder):
    """Return the records of a folder that the project computed: its own, and those of submissions that agree."""
    joined = join(folder)
    return [*joined.records, *(record for records in joined.apart.values() for record in records)]


def states(folder):
    """Return the different states of a folder's rows: ``verified``, ``self-reported``."""
    joined = join(folder)
    rows = {"verified": computed(folder), "self-reported": joined.reported}
    return {state for state, found in rows.items() if found}


def lower_a_score(folder):
    """Lower the score of one record by 0.1."""
    tamper(folder, of_score(lambda score: [dataclasses.replace(score, value=score.value - 0.1)]))


def own_plugins(folder):
    """Return the arguments that name the plugins of a submission."""
    return [text for path in sorted((folder / "plugins").glob("*.py")) for text in ("--plugin", path)]
