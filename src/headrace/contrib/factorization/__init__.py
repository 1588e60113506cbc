"""``tf.contrib.factorization``: clustering, mixtures and the factors of matrices."""

from headrace.contrib.folders import Folder as _Folder
from headrace.namespaces.lazy import lazy as _lazy

python = _Folder(__name__, "python")

__getattr__, __dir__ = _lazy(
    __name__,
    {
        "headrace.contrib.factorization.mixture_estimator": ("GMM",),
        "headrace.contrib.factorization.mixtures": (
            "DIAG_COVARIANCE",
            "FULL_COVARIANCE",
            "GmmAlgorithm",
            "gmm",
        ),
        "headrace.contrib.factorization.wals_estimator": ("WALSMatrixFactorization",),
        "headrace.contrib.factorization.wals_model": ("WALSModel",),
        "headrace.estimator.canned.clustering": (
            "CLUSTERS_VAR_NAME",
            "COSINE_DISTANCE",
            "KMC2_INIT",
            "KMEANS_PLUS_PLUS_INIT",
            "RANDOM_INIT",
            "SQUARED_EUCLIDEAN_DISTANCE",
            "KMeans",
        ),
        "headrace.estimator.canned.kmeans": ("KMeansClustering",),
    },
)
