"""Ensembles of trees, of scikit-learn, LightGBM, XGBoost and CatBoost."""

from __future__ import annotations

from catboost import CatBoostClassifier, CatBoostRegressor
from lightgbm import LGBMClassifier, LGBMRanker, LGBMRegressor
from sklearn.ensemble import (
    AdaBoostClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    IsolationForest,
    RandomForestClassifier,
)
from sklearn.tree import DecisionTreeClassifier
from xgboost import XGBClassifier, XGBRegressor

from tests.models.sources.classical_models.tables import (
    ALONE,
    DIABETES,
    GAPS,
    GAPS_OF_TWO,
    IRIS,
    RANKED,
    TWO,
)
from tests.models.sources.exporting.classical import Catalogue

MODELS = Catalogue()
LIGHT = {"n_estimators": 3, "num_leaves": 5, "min_child_samples": 5, "verbose": -1, "random_state": 0, "n_jobs": 1}
EXTREME = {"n_estimators": 3, "max_depth": 3, "random_state": 0, "n_jobs": 1}
CAT = {"iterations": 3, "depth": 3, "random_seed": 0, "verbose": False, "allow_writing_files": False}
MODELS.enter("sklearn", {
    "decision_tree": (GAPS, "DecisionTreeClassifier, missing values.",
                      DecisionTreeClassifier(max_depth=4, random_state=0)),
    "random_forest": (IRIS, "RandomForestClassifier, three classes.",
                      RandomForestClassifier(4, max_depth=3, random_state=0)),
    "random_forest_binary": (TWO, "RandomForestClassifier, two classes: votes for the first alone.",
                             RandomForestClassifier(4, max_depth=3, random_state=0)),
    "extra_trees": (DIABETES, "ExtraTreesRegressor: thresholds between any two f32.",
                    ExtraTreesRegressor(4, max_depth=4, random_state=0)),
    "gradient_boosting": (TWO, "GradientBoostingClassifier, two classes, with a base value.",
                          GradientBoostingClassifier(n_estimators=4, random_state=0)),
    "ada_boost": (IRIS, "AdaBoostClassifier.", AdaBoostClassifier(n_estimators=3, random_state=0)),
    "isolation_forest": (ALONE, "IsolationForest: outliers.",
                         IsolationForest(n_estimators=4, max_samples=16, random_state=0)),
})
MODELS.enter("lightgbm", {
    "lightgbm_binary": (TWO, "LGBMClassifier, two classes.", LGBMClassifier(**LIGHT)),
    "lightgbm": (GAPS, "LGBMClassifier, three classes, missing values.", LGBMClassifier(**LIGHT)),
    "lightgbm_regressor": (DIABETES, "LGBMRegressor.", LGBMRegressor(**LIGHT)),
    "lightgbm_ranker": (RANKED, "LGBMRanker.", LGBMRanker(**LIGHT), {"group": [10] * 12}),
})
MODELS.enter("xgboost", {
    "xgboost_binary": (GAPS_OF_TWO, "XGBClassifier, two classes, missing values.", XGBClassifier(**EXTREME)),
    "xgboost": (IRIS, "XGBClassifier, three classes.", XGBClassifier(**EXTREME)),
    "xgboost_regressor": (DIABETES, "XGBRegressor.", XGBRegressor(**EXTREME)),
})
MODELS.enter("catboost", {
    "catboost_binary": (GAPS_OF_TWO, "CatBoostClassifier, two classes: votes w and -w, missing values.",
                        CatBoostClassifier(**CAT)),
    "catboost": (IRIS, "CatBoostClassifier, three classes.", CatBoostClassifier(**CAT)),
    "catboost_regressor": (DIABETES, "CatBoostRegressor.", CatBoostRegressor(**CAT)),
})
