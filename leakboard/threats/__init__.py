"""Define the six threats: the attacker's view, its answer, and the score of the answer.

Each threat has a module: `secrets`, `words`, `texts`, `membership`, `releases` and `canaries`. The other modules
support them:

- `threat` is the base of all threats;
- `oracle` answers an attack's questions to the victim;
- `candidates` draws units of training data;
- `published` publishes texts again;
- `wording` has the sentences.
"""
