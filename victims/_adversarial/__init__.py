"""Train an encoder against an adversary, and choose its epoch by the adversary's success."""
