"""Check what every plugin promises: the conformance suite, with one function a promise; `suite` runs it."""
