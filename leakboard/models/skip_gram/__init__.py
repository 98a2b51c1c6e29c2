"""Skip-gram with negative sampling, trained by differentially private gradient descent: pairs, tables and steps."""
