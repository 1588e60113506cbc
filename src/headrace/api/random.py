"""``tf.random``: random tensors."""

from headrace.ops.nn.sampling_api import (
    all_candidate_sampler,
    fixed_unigram_candidate_sampler,
    learned_unigram_candidate_sampler,
    log_uniform_candidate_sampler,
    uniform_candidate_sampler,
)
from headrace.ops.random.api import (
    categorical,
    multinomial,
    stateless_categorical,
    stateless_multinomial,
    stateless_normal,
    stateless_truncated_normal,
    stateless_uniform,
    truncated_normal,
)
from headrace.ops.random.api import random_crop as crop
from headrace.ops.random.api import random_gamma as gamma
from headrace.ops.random.api import random_normal as normal
from headrace.ops.random.api import random_poisson as poisson
from headrace.ops.random.api import random_shuffle as shuffle
from headrace.ops.random.api import random_uniform as uniform
from headrace.ops.state.scopes_api import get_seed, set_random_seed

__all__ = [
    "all_candidate_sampler",
    "categorical",
    "crop",
    "fixed_unigram_candidate_sampler",
    "gamma",
    "get_seed",
    "learned_unigram_candidate_sampler",
    "log_uniform_candidate_sampler",
    "multinomial",
    "normal",
    "poisson",
    "set_random_seed",
    "shuffle",
    "stateless_categorical",
    "stateless_multinomial",
    "stateless_normal",
    "stateless_truncated_normal",
    "stateless_uniform",
    "truncated_normal",
    "uniform",
    "uniform_candidate_sampler",
]
