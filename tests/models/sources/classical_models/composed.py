"""Estimators made of others, and what prepares their inputs."""

from __future__ import annotations

from sklearn.calibration import CalibratedClassifierCV
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.ensemble import BaggingClassifier, StackingClassifier, StackingRegressor, VotingRegressor
from sklearn.feature_selection import SelectKBest
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.mixture import GaussianMixture
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    KBinsDiscretizer,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    PolynomialFeatures,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from tests.models.sources.classical_models.tables import ALONE, DIABETES, FEW, GAPS, IRIS, TWO, WHOLE
from tests.models.sources.exporting.classical import Catalogue

MODELS = Catalogue()


@MODELS.exported("sklearn", IRIS)
def stacking() -> StackingClassifier:
    """StackingClassifier of a logistic regression and a tree."""
    tree = DecisionTreeClassifier(max_depth=3, random_state=0)
    return StackingClassifier([("linear", LogisticRegression(max_iter=300)), ("tree", tree)], cv=3)


@MODELS.exported("sklearn", FEW)
def stacking_with_features() -> StackingClassifier:
    """StackingClassifier of probabilities of a support vector machine and of GaussianNB, beside the features."""
    first = [("vectors", SVC(probability=True, random_state=0)), ("bayes", GaussianNB())]
    return StackingClassifier(first, passthrough=True, cv=3, final_estimator=LogisticRegression(max_iter=500))


@MODELS.exported("sklearn", DIABETES)
def stacking_regressor() -> StackingRegressor:
    """StackingRegressor of a linear model and a tree."""
    first = [("linear", Ridge()), ("tree", DecisionTreeRegressor(max_depth=3, random_state=0))]
    return StackingRegressor(first, cv=3)


@MODELS.exported("sklearn", DIABETES)
def voting_regressor() -> VotingRegressor:
    """VotingRegressor of a linear model and a tree."""
    return VotingRegressor([("linear", Ridge()), ("tree", DecisionTreeRegressor(max_depth=3, random_state=0))])


@MODELS.exported("sklearn", IRIS)
def bagging() -> BaggingClassifier:
    """BaggingClassifier of three trees."""
    return BaggingClassifier(DecisionTreeClassifier(max_depth=3), n_estimators=3, random_state=0)


@MODELS.exported("sklearn", IRIS)
def calibrated() -> CalibratedClassifierCV:
    """CalibratedClassifierCV of GaussianNB with isotonic regression."""
    return CalibratedClassifierCV(GaussianNB(), method="isotonic", cv=2)


@MODELS.exported("sklearn", TWO)
def calibrated_binary() -> CalibratedClassifierCV:
    """CalibratedClassifierCV of a tree with sigmoids, two classes."""
    return CalibratedClassifierCV(DecisionTreeClassifier(max_depth=3, random_state=0), cv=2)


@MODELS.exported("sklearn", IRIS)
def one_vs_rest() -> OneVsRestClassifier:
    """OneVsRestClassifier of logistic regressions."""
    return OneVsRestClassifier(LogisticRegression(max_iter=300))


@MODELS.exported("sklearn", GAPS)
def pipeline() -> Pipeline:
    """SimpleImputer, StandardScaler, PCA and LogisticRegression."""
    return make_pipeline(SimpleImputer(), StandardScaler(), PCA(2, random_state=0), LogisticRegression())


@MODELS.exported("sklearn", IRIS)
def pipeline_of_features() -> Pipeline:
    """MinMaxScaler, PolynomialFeatures, SelectKBest, RobustScaler and LogisticRegression."""
    steps = MinMaxScaler(), PolynomialFeatures(2), SelectKBest(k=5), RobustScaler(), LogisticRegression(max_iter=500)
    return make_pipeline(*steps)


@MODELS.exported("sklearn", WHOLE)
def one_hot() -> Pipeline:
    """OneHotEncoder of int64 categories, and LogisticRegression."""
    return make_pipeline(OneHotEncoder(handle_unknown="ignore", sparse_output=False), LogisticRegression(max_iter=300))


@MODELS.exported("sklearn", DIABETES)
def bins() -> Pipeline:
    """KBinsDiscretizer and LinearRegression."""
    steps = KBinsDiscretizer(4, encode="onehot-dense", strategy="uniform"), LinearRegression()
    return make_pipeline(*steps)


@MODELS.exported("sklearn", FEW)
def quantiles() -> Pipeline:
    """QuantileTransformer, Normalizer and LogisticRegression."""
    return make_pipeline(QuantileTransformer(n_quantiles=8), Normalizer(), LogisticRegression())


@MODELS.exported("sklearn", ALONE)
def k_means() -> KMeans:
    """KMeans: the nearest of three centres, and the distances."""
    return KMeans(3, n_init=1, random_state=0)


@MODELS.exported("sklearn", ALONE)
def gaussian_mixture() -> GaussianMixture:
    """GaussianMixture of two components."""
    return GaussianMixture(2, random_state=0)
