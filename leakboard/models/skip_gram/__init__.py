"""Skip-gram with negative sampling, trained by differentially private gradient descent: pairs, tables and steps.

No library does this fast enough: gensim has no gradients by unit, and Opacus takes more than 100 times as long for the
same step over 10,000 words (``benchmarks/private_word2vec.py``).
"""
