"""Draw and write the reviews of `generated_reviews`, and compute what their texts give away."""
