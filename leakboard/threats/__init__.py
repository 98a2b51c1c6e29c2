"""Define the threats: the attacker's view, its answer, and the score of the answer.

`secrets` has two threats: attributes and entities. `words`, `texts`, `linking`, `presence`, `membership`,
`sanitised_words`, `releases` and `canaries` have one each. The other modules support them:

- `threat` is the base of all threats;
- `oracle` answers an attack's questions to the victim;
- `candidates` draws units of training data;
- `published` publishes texts again;
- `sentence_parts` has the sentence about an audit, and numbers and names for the sentences of threats.
"""
