"""Published results as pages that one browses: a static site, and one self-contained file of a run."""
