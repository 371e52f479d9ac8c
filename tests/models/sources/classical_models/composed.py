"""Estimators made of others, and what prepares their inputs."""

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
from sklearn.pipeline import make_pipeline
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

TREE = DecisionTreeClassifier(max_depth=3, random_state=0)
TWO_NUMBERS = [("linear", Ridge()), ("tree", DecisionTreeRegressor(max_depth=3, random_state=0))]

MODELS = Catalogue()
MODELS.enter("sklearn", {
    "stacking": (IRIS, "StackingClassifier of a logistic regression and a tree.",
                 StackingClassifier([("linear", LogisticRegression(max_iter=300)), ("tree", TREE)], cv=3)),
    "stacking_with_features": (
        FEW, "StackingClassifier of probabilities of a support vector machine and of GaussianNB, beside the features.",
        StackingClassifier([("vectors", SVC(probability=True, random_state=0)), ("bayes", GaussianNB())],
                           passthrough=True, cv=3, final_estimator=LogisticRegression(max_iter=500)),
    ),
    "stacking_regressor": (DIABETES, "StackingRegressor of a linear model and a tree.",
                           StackingRegressor(TWO_NUMBERS, cv=3)),
    "voting_regressor": (DIABETES, "VotingRegressor of a linear model and a tree.", VotingRegressor(TWO_NUMBERS)),
    "bagging": (IRIS, "BaggingClassifier of three trees.",
                BaggingClassifier(DecisionTreeClassifier(max_depth=3), n_estimators=3, random_state=0)),
    "calibrated": (IRIS, "CalibratedClassifierCV of GaussianNB with isotonic regression.",
                   CalibratedClassifierCV(GaussianNB(), method="isotonic", cv=2)),
    "calibrated_binary": (TWO, "CalibratedClassifierCV of a tree with sigmoids, two classes.",
                          CalibratedClassifierCV(TREE, cv=2)),
    "one_vs_rest": (IRIS, "OneVsRestClassifier of logistic regressions.",
                    OneVsRestClassifier(LogisticRegression(max_iter=300))),
    "pipeline": (GAPS, "SimpleImputer, StandardScaler, PCA and LogisticRegression.",
                 make_pipeline(SimpleImputer(), StandardScaler(), PCA(2, random_state=0), LogisticRegression())),
    "pipeline_of_features": (
        IRIS, "MinMaxScaler, PolynomialFeatures, SelectKBest, RobustScaler and LogisticRegression.",
        make_pipeline(MinMaxScaler(), PolynomialFeatures(2), SelectKBest(k=5), RobustScaler(),
                      LogisticRegression(max_iter=500)),
    ),
    "one_hot": (
        WHOLE, "OneHotEncoder of int64 categories, and LogisticRegression.",
        make_pipeline(OneHotEncoder(handle_unknown="ignore", sparse_output=False), LogisticRegression(max_iter=300)),
    ),
    "bins": (DIABETES, "KBinsDiscretizer and LinearRegression.",
             make_pipeline(KBinsDiscretizer(4, encode="onehot-dense", strategy="uniform"), LinearRegression())),
    "quantiles": (FEW, "QuantileTransformer, Normalizer and LogisticRegression.",
                  make_pipeline(QuantileTransformer(n_quantiles=8), Normalizer(), LogisticRegression())),
    "k_means": (ALONE, "KMeans: the nearest of three centres, and the distances.", KMeans(3, n_init=1, random_state=0)),
    "gaussian_mixture": (ALONE, "GaussianMixture of two components.", GaussianMixture(2, random_state=0)),
})
