"""Linear models, support vector machines, neighbours, Bayes, networks and Gaussian processes."""

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
MODELS.enter("sklearn", {
    "logistic_regression": (IRIS, "LogisticRegression, three classes.", LogisticRegression(max_iter=300)),
    "logistic_regression_binary": (TWO, "LogisticRegression, two classes.", LogisticRegression(max_iter=300)),
    "sgd_classifier": (TWO, "SGDClassifier with logistic loss, two classes.",
                       SGDClassifier(loss="log_loss", random_state=0)),
    "linear_svc": (IRIS, "LinearSVC: labels and distances, no probabilities.", LinearSVC(random_state=0)),
    "ridge": (DIABETES, "Ridge.", Ridge()),
    "poisson_regressor": (DIABETES, "PoissonRegressor: the exponential of a linear model.", PoissonRegressor(alpha=10)),
    "svc": (FEW, "SVC without probabilities: a score for each pair of classes.", SVC()),
    "svc_probability": (FEW, "SVC with fitted probabilities, three classes: pairwise coupling.",
                        SVC(probability=True, random_state=0)),
    "svc_probability_binary": (FEW_OF_TWO, "SVC with fitted probabilities, a polynomial kernel and two classes.",
                               SVC(kernel="poly", probability=True, random_state=0)),
    "nu_svc": (FEW, "NuSVC with fitted probabilities and a linear kernel.",
               NuSVC(nu=0.2, kernel="linear", probability=True, random_state=0)),
    "svr": (FEW_NUMBERS, "SVR.", SVR(C=10)),
    "one_class_svm": (ALONE, "OneClassSVM: outliers.", OneClassSVM(nu=0.1)),
    "k_neighbors": (FEW, "KNeighborsClassifier.", KNeighborsClassifier(3)),
    "k_neighbors_regressor": (FEW_NUMBERS, "KNeighborsRegressor, weighted by distance.",
                              KNeighborsRegressor(3, weights="distance")),
    "gaussian_nb": (IRIS, "GaussianNB: sums over features of rank-3 tensors.", GaussianNB()),
    "bernoulli_nb": (IRIS, "BernoulliNB after a threshold.", BernoulliNB(binarize=2.0)),
    "multinomial_nb": (IRIS, "MultinomialNB.", MultinomialNB()),
    "complement_nb": (IRIS, "ComplementNB.", ComplementNB()),
    "lda": (IRIS, "LinearDiscriminantAnalysis.", LinearDiscriminantAnalysis()),
    "qda": (IRIS, "QuadraticDiscriminantAnalysis.", QuadraticDiscriminantAnalysis()),
    "mlp_classifier": (IRIS, "MLPClassifier with eight hidden units.",
                       MLPClassifier((8,), max_iter=200, random_state=0)),
    "gaussian_process": (FEW_NUMBERS, "GaussianProcessRegressor with an RBF kernel.",
                         GaussianProcessRegressor(RBF(5.0) + WhiteKernel(1.0), optimizer=None, normalize_y=True)),
})
