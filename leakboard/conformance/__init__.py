"""The conformance suite: what every plugin promises, one function a promise, for any plugin that can be reached."""
