"""Linear models, support vector machines, neighbours, Bayes, networks and Gaussian processes."""

from __future__ import annotations

from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.linear_model import LogisticRegression, PoissonRegressor, Ridge, SGDClassifier
from sklearn.naive_bayes import BernoulliNB, ComplementNB, GaussianNB, MultinomialNB
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.neural_network import MLPClassifier
from sklearn.svm import SVC, SVR, LinearSVC, NuSVC, OneClassSVM

from tests.models.sources.classical_models.tables import (
    ALONE,
    DIABETES,
    FEW,
    FEW_NUMBERS,
    FEW_OF_TWO,
    IRIS,
    TWO,
)
from tests.models.sources.exporting.classical import Catalogue

MODELS = Catalogue()


@MODELS.exported("sklearn", IRIS)
def logistic_regression() -> LogisticRegression:
    """LogisticRegression, three classes."""
    return LogisticRegression(max_iter=300)


@MODELS.exported("sklearn", TWO)
def logistic_regression_binary() -> LogisticRegression:
    """LogisticRegression, two classes."""
    return LogisticRegression(max_iter=300)


@MODELS.exported("sklearn", TWO)
def sgd_classifier() -> SGDClassifier:
    """SGDClassifier with logistic loss, two classes."""
    return SGDClassifier(loss="log_loss", random_state=0)


@MODELS.exported("sklearn", IRIS)
def linear_svc() -> LinearSVC:
    """LinearSVC: labels and distances, no probabilities."""
    return LinearSVC(random_state=0)


@MODELS.exported("sklearn", DIABETES)
def ridge() -> Ridge:
    """Ridge."""
    return Ridge()


@MODELS.exported("sklearn", DIABETES)
def poisson_regressor() -> PoissonRegressor:
    """PoissonRegressor: the exponential of a linear model."""
    return PoissonRegressor(alpha=10)


@MODELS.exported("sklearn", FEW)
def svc() -> SVC:
    """SVC without probabilities: a score for each pair of classes."""
    return SVC()


@MODELS.exported("sklearn", FEW)
def svc_probability() -> SVC:
    """SVC with fitted probabilities, three classes: pairwise coupling."""
    return SVC(probability=True, random_state=0)


@MODELS.exported("sklearn", FEW_OF_TWO)
def svc_probability_binary() -> SVC:
    """SVC with fitted probabilities, a polynomial kernel and two classes."""
    return SVC(kernel="poly", probability=True, random_state=0)


@MODELS.exported("sklearn", FEW)
def nu_svc() -> NuSVC:
    """NuSVC with fitted probabilities and a linear kernel."""
    return NuSVC(nu=0.2, kernel="linear", probability=True, random_state=0)


@MODELS.exported("sklearn", FEW_NUMBERS)
def svr() -> SVR:
    """SVR."""
    return SVR(C=10)


@MODELS.exported("sklearn", ALONE)
def one_class_svm() -> OneClassSVM:
    """OneClassSVM: outliers."""
    return OneClassSVM(nu=0.1)


@MODELS.exported("sklearn", FEW)
def k_neighbors() -> KNeighborsClassifier:
    """KNeighborsClassifier."""
    return KNeighborsClassifier(3)


@MODELS.exported("sklearn", FEW_NUMBERS)
def k_neighbors_regressor() -> KNeighborsRegressor:
    """KNeighborsRegressor, weighted by distance."""
    return KNeighborsRegressor(3, weights="distance")


@MODELS.exported("sklearn", IRIS)
def gaussian_nb() -> GaussianNB:
    """GaussianNB: sums over features of rank-3 tensors."""
    return GaussianNB()


@MODELS.exported("sklearn", IRIS)
def bernoulli_nb() -> BernoulliNB:
    """BernoulliNB after a threshold."""
    return BernoulliNB(binarize=2.0)


@MODELS.exported("sklearn", IRIS)
def multinomial_nb() -> MultinomialNB:
    """MultinomialNB."""
    return MultinomialNB()


@MODELS.exported("sklearn", IRIS)
def complement_nb() -> ComplementNB:
    """ComplementNB."""
    return ComplementNB()


@MODELS.exported("sklearn", IRIS)
def lda() -> LinearDiscriminantAnalysis:
    """LinearDiscriminantAnalysis."""
    return LinearDiscriminantAnalysis()


@MODELS.exported("sklearn", IRIS)
def qda() -> QuadraticDiscriminantAnalysis:
    """QuadraticDiscriminantAnalysis."""
    return QuadraticDiscriminantAnalysis()


@MODELS.exported("sklearn", IRIS)
def mlp_classifier() -> MLPClassifier:
    """MLPClassifier with eight hidden units."""
    return MLPClassifier((8,), max_iter=200, random_state=0)


@MODELS.exported("sklearn", FEW_NUMBERS)
def gaussian_process() -> GaussianProcessRegressor:
    """GaussianProcessRegressor with an RBF kernel."""
    return GaussianProcessRegressor(RBF(5.0) + WhiteKernel(1.0), optimizer=None, normalize_y=True)
