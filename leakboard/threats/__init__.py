"""What attackers may see, what they answer, and how the answers are scored: one file a threat.

`leakboard.threats.threat` has what all threats share; `leakboard.threats.oracle` is what an attack may ask a victim.
"""
