# Written by tools/make_stubs.py from __init__.py; do not edit.
from headrace.contrib.training.hparam import *
from headrace.contrib.training.strategies import *
from headrace.contrib.training import evaluation as evaluation
from headrace.contrib.training.evaluation import StopAfterNEvalsHook as StopAfterNEvalsHook
from headrace.contrib.training.evaluation import SummaryAtEndHook as SummaryAtEndHook
from headrace.contrib.training.evaluation import checkpoints_iterator as checkpoints_iterator
from headrace.contrib.training.evaluation import evaluate_once as evaluate_once
from headrace.contrib.training.evaluation import evaluate_repeatedly as evaluate_repeatedly
from headrace.contrib.training.evaluation import get_or_create_eval_step as get_or_create_eval_step
from headrace.contrib.training.evaluation import wait_for_new_checkpoint as wait_for_new_checkpoint
from headrace.contrib.training import training as training
from headrace.contrib.training.training import add_gradients_summaries as add_gradients_summaries
from headrace.contrib.training.training import clip_gradient_norms as clip_gradient_norms
from headrace.contrib.training.training import clip_gradient_norms_fn as clip_gradient_norms_fn
from headrace.contrib.training.training import create_train_op as create_train_op
from headrace.contrib.training.training import multiply_gradients as multiply_gradients
from headrace.contrib.training.training import train as train
