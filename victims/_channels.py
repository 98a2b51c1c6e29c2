"""Name the channels that a sanitiser may have."""

from collections.abc import Mapping

from leakboard.privacy.channels.channel import Channel
from leakboard.privacy.channels.clusant import CluSanT
from leakboard.privacy.channels.custext import CusText, CusTextAsInPyPantera, CusTextAsReleased
from leakboard.privacy.channels.diffractor import OneDiffractor
from leakboard.privacy.channels.noisy_vectors import (
    Mahalanobis,
    MahalanobisAsInMLDP,
    MahalanobisAsInPyPantera,
    MultivariateLaplace,
    Vickrey,
    VickreyAsInMLDP,
)
from leakboard.privacy.channels.randomised_response import ExponentialMechanism, RandomisedResponse
from leakboard.privacy.channels.rantext import RANTEXT
from leakboard.privacy.channels.santext import SanText, SanTextPlus
from leakboard.privacy.channels.tem import TEM, TEMAsInMLDP, TEMAsInPyPantera
from leakboard.privacy.channels.truncated_gumbel import TruncatedGumbelAsInMLDP

CHANNELS: Mapping[str, type[Channel]] = {
    "randomised_response": RandomisedResponse,
    "exponential": ExponentialMechanism,
    "santext": SanText,
    "santext_plus": SanTextPlus,
    "custext": CusText,
    "custext_as_released": CusTextAsReleased,
    "custext_pypantera": CusTextAsInPyPantera,
    "tem": TEM,
    "tem_mldp": TEMAsInMLDP,
    "tem_pypantera": TEMAsInPyPantera,
    "clusant": CluSanT,
    "one_diffractor": OneDiffractor,
    "rantext": RANTEXT,
    "multivariate_laplace": MultivariateLaplace,
    "mahalanobis": Mahalanobis,
    "mahalanobis_mldp": MahalanobisAsInMLDP,
    "mahalanobis_pypantera": MahalanobisAsInPyPantera,
    "truncated_gumbel_mldp": TruncatedGumbelAsInMLDP,
    "vickrey": Vickrey,
    "vickrey_mldp": VickreyAsInMLDP,
}
