# Written by tools/make_stubs.py from random.py; do not edit.
__all__ = ['all_candidate_sampler', 'categorical', 'crop', 'fixed_unigram_candidate_sampler', 'gamma', 'get_seed', 'learned_unigram_candidate_sampler', 'log_uniform_candidate_sampler', 'multinomial', 'normal', 'poisson', 'set_random_seed', 'shuffle', 'stateless_categorical', 'stateless_multinomial', 'stateless_normal', 'stateless_truncated_normal', 'stateless_uniform', 'truncated_normal', 'uniform', 'uniform_candidate_sampler']
from headrace.ops.nn.sampling_api import all_candidate_sampler as all_candidate_sampler
from headrace.ops.nn.sampling_api import fixed_unigram_candidate_sampler as fixed_unigram_candidate_sampler
from headrace.ops.nn.sampling_api import learned_unigram_candidate_sampler as learned_unigram_candidate_sampler
from headrace.ops.nn.sampling_api import log_uniform_candidate_sampler as log_uniform_candidate_sampler
from headrace.ops.nn.sampling_api import uniform_candidate_sampler as uniform_candidate_sampler
from headrace.ops.random.api import categorical as categorical
from headrace.ops.random.api import random_crop as _crop
crop = _crop
from headrace.ops.random.api import random_gamma as _gamma
gamma = _gamma
from headrace.ops.random.api import multinomial as multinomial
from headrace.ops.random.api import random_normal as _normal
normal = _normal
from headrace.ops.random.api import random_poisson as _poisson
poisson = _poisson
from headrace.ops.random.api import random_shuffle as _shuffle
shuffle = _shuffle
from headrace.ops.random.api import stateless_categorical as stateless_categorical
from headrace.ops.random.api import stateless_multinomial as stateless_multinomial
from headrace.ops.random.api import stateless_normal as stateless_normal
from headrace.ops.random.api import stateless_truncated_normal as stateless_truncated_normal
from headrace.ops.random.api import stateless_uniform as stateless_uniform
from headrace.ops.random.api import truncated_normal as truncated_normal
from headrace.ops.random.api import random_uniform as _uniform
uniform = _uniform
from headrace.ops.state.scopes_api import get_seed as get_seed
from headrace.ops.state.scopes_api import set_random_seed as set_random_seed
