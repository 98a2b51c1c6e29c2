"""Name the protections that a store of vectors may have."""

from collections.abc import Mapping

from leakboard.privacy.protections.compression import Binary, Int8, ProductQuantisation, Truncation
from leakboard.privacy.protections.noise import GaussianNoise, MetricLaplace, Purkayastha
from leakboard.privacy.protections.none import NoProtection
from leakboard.privacy.protections.protection import Protection
from leakboard.privacy.protections.scale_and_perturb import ScaleAndPerturb
from leakboard.privacy.protections.secret_maps import Permutation, Rotation, SecretLinear, Watermark
from leakboard.privacy.protections.whitening import Whitening

PROTECTIONS: Mapping[str, type[Protection]] = {
    "none": NoProtection,
    "rotation": Rotation,
    "permutation": Permutation,
    "watermark": Watermark,
    "secret_linear": SecretLinear,
    "scale_and_perturb": ScaleAndPerturb,
    "gaussian": GaussianNoise,
    "metric_laplace": MetricLaplace,
    "purkayastha": Purkayastha,
    "int8": Int8,
    "binary": Binary,
    "product_quantisation": ProductQuantisation,
    "truncation": Truncation,
    "whitening": Whitening,
}
