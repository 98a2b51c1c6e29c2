"""Train skip-gram with negative sampling by differentially private gradient descent.

No library does this fast enough. Gensim has no gradients by unit. Opacus takes more than 100 times as long for the same
step over 10,000 words (``benchmarks/private_word2vec.py``).
"""
