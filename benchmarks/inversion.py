"""Compare a training step of the decoder of `inversion` with its matrix products, and with GPT-2 without a vector.

A batch has 128 random texts of 16 pieces from a vocabulary of 5,000. The products are those with the weights of the
layers and of the logits, forwards and backwards, by `torch.mm` at the same shapes; those of attention are left out.
GPT-2 is Hugging Face's, of the same size, with its own loss; it reads the text alone, without the four positions of the
vector.
"""

import torch
from _timing import alternate, verdict
from transformers import GPT2Config, GPT2LMHeadModel

from leakboard.attacks._reading.decoder import PREFIX, Decoder, Hints
from leakboard.attacks.inversion import Inversion
from leakboard.models.language_model import FIRST_UNIT

BATCH, LENGTH, PIECES, DIMENSION = 128, 16, 5_000, 384


def product_shapes(width: int, layers: int) -> list[tuple[int, int, int]]:
    """Return the shapes (m, k, n) of the products of one forward pass."""
    rows, pieces = BATCH * (PREFIX + LENGTH - 1), BATCH * (LENGTH - 1)
    layer = [(rows, width, 3 * width), (rows, width, width), (rows, width, 4 * width), (rows, 4 * width, width)]
    return [*layer * layers, (pieces, width, FIRST_UNIT + PIECES), (BATCH, 3 * DIMENSION, PREFIX * width)]


def products(shapes: list[tuple[int, int, int]]) -> None:
    """Multiply at each shape as a layer does: forwards, and for the gradients of inputs and weights."""
    for m, k, n in shapes:
        inputs, weights, gradient = torch.ones(m, k), torch.ones(k, n), torch.ones(m, n)
        torch.mm(inputs, weights)
        torch.mm(gradient, weights.T)
        torch.mm(inputs.T, gradient)


def main(rounds: int = 5, steps: int = 10, threads: int = 1) -> None:
    """Time each side."""
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    width, layers = Inversion().width, Inversion().layers
    decoder = Decoder(torch.nn.Linear(DIMENSION, PIECES), DIMENSION, PIECES, width, layers, LENGTH)
    config = GPT2Config(
        vocab_size=FIRST_UNIT + PIECES,
        n_embd=width,
        n_layer=layers,
        n_head=width // 64,
        attn_pdrop=0.0,
        bos_token_id=0,
        eos_token_id=0,
    )
    plain = GPT2LMHeadModel(config)
    hints = Hints(torch.randn(BATCH, DIMENSION))
    texts = [torch.randint(FIRST_UNIT, PIECES, (LENGTH,)) for _ in range(BATCH)]
    batch = torch.stack(texts)
    optimisers = [torch.optim.AdamW(model.parameters(), fused=True) for model in (decoder, plain)]

    def ours() -> None:
        for _ in range(steps):
            optimisers[0].zero_grad()
            decoder.loss(hints, texts).backward()
            optimisers[0].step()

    def gpt2() -> None:
        for _ in range(steps):
            optimisers[1].zero_grad()
            plain(input_ids=batch, labels=batch).loss.backward()
            optimisers[1].step()

    shapes = product_shapes(width, layers)
    times = alternate(rounds, ours=ours, products=lambda: [products(shapes) for _ in range(steps)], gpt2=gpt2)
    print(f"a step: {times['ours'] / steps:.3f} s; its products: {times['products'] / steps:.3f} s")
    verdict("products_of_step", times["products"] / times["ours"], 0.6)
    verdict("gpt2_by_ours", times["gpt2"] / times["ours"], 0.8)
