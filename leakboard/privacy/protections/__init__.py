"""Protect stored vectors: secret maps, noise, compression and whitening, each fitted on the stored vectors."""
