"""Train the classifiers behind `attribute_inference` and `entity_presence`; read `portfolio.fit_portfolio` first."""
