"""Build attacks that give prepared answers and record what they are shown."""


def answering(kind, answer=None, *, prepared=None, **options):
    """Return an attack that keeps its view, its seed and the last vectors or table it is shown.

    Args:
        kind: class of the attack, such as ``SecretsAttack``.
        answer: called with what is shown; its result is the attack's answer.
        prepared: called with the view instead, for threats that take an answer before they show anything.
        options: attributes of the attack.
    """

    class Answering(kind):
        view = seed = shown = None

        def fit(self, view, seed):
            self.view, self.seed = view, seed
            return prepared(view) if prepared else self.guess

        def guess(self, shown):
            self.shown = shown
            return answer(shown)

    attack = Answering()
    for name, value in options.items():
        setattr(attack, name, value)
    return attack


def values_of(result):
    """Return the values of a result's metrics by name, without those of single variables."""
    return {metric.name: metric.value for metric in result.metrics if not metric.variable}
