# Written by tools/make_stubs.py from __init__.py; do not edit.
from headrace.contrib.factorization.mixture_estimator import GMM as GMM
from headrace.contrib.factorization.mixtures import DIAG_COVARIANCE as DIAG_COVARIANCE
from headrace.contrib.factorization.mixtures import FULL_COVARIANCE as FULL_COVARIANCE
from headrace.contrib.factorization.mixtures import GmmAlgorithm as GmmAlgorithm
from headrace.contrib.factorization.mixtures import gmm as gmm
from headrace.contrib.factorization.wals_estimator import WALSMatrixFactorization as WALSMatrixFactorization
from headrace.contrib.factorization.wals_model import WALSModel as WALSModel
from headrace.estimator.canned.clustering import CLUSTERS_VAR_NAME as CLUSTERS_VAR_NAME
from headrace.estimator.canned.clustering import COSINE_DISTANCE as COSINE_DISTANCE
from headrace.estimator.canned.clustering import KMC2_INIT as KMC2_INIT
from headrace.estimator.canned.clustering import KMEANS_PLUS_PLUS_INIT as KMEANS_PLUS_PLUS_INIT
from headrace.estimator.canned.clustering import KMeans as KMeans
from headrace.estimator.canned.clustering import RANDOM_INIT as RANDOM_INIT
from headrace.estimator.canned.clustering import SQUARED_EUCLIDEAN_DISTANCE as SQUARED_EUCLIDEAN_DISTANCE
from headrace.estimator.canned.kmeans import KMeansClustering as KMeansClustering
