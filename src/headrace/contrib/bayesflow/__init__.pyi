# Written by tools/make_stubs.py from __init__.py; do not edit.
from headrace.contrib.bayesflow import hmc as hmc
from headrace.contrib.bayesflow import metropolis_hastings as metropolis_hastings
from headrace.contrib.bayesflow import monte_carlo as monte_carlo
