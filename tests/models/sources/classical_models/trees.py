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


@MODELS.exported("sklearn", GAPS)
def decision_tree() -> DecisionTreeClassifier:
    """DecisionTreeClassifier, missing values."""
    return DecisionTreeClassifier(max_depth=4, random_state=0)


@MODELS.exported("sklearn", IRIS)
def random_forest() -> RandomForestClassifier:
    """RandomForestClassifier, three classes."""
    return RandomForestClassifier(4, max_depth=3, random_state=0)


@MODELS.exported("sklearn", TWO)
def random_forest_binary() -> RandomForestClassifier:
    """RandomForestClassifier, two classes: votes for the first alone."""
    return RandomForestClassifier(4, max_depth=3, random_state=0)


@MODELS.exported("sklearn", DIABETES)
def extra_trees() -> ExtraTreesRegressor:
    """ExtraTreesRegressor: thresholds between any two f32."""
    return ExtraTreesRegressor(4, max_depth=4, random_state=0)


@MODELS.exported("sklearn", TWO)
def gradient_boosting() -> GradientBoostingClassifier:
    """GradientBoostingClassifier, two classes, with a base value."""
    return GradientBoostingClassifier(n_estimators=4, random_state=0)


@MODELS.exported("sklearn", IRIS)
def ada_boost() -> AdaBoostClassifier:
    """AdaBoostClassifier."""
    return AdaBoostClassifier(n_estimators=3, random_state=0)


@MODELS.exported("sklearn", ALONE)
def isolation_forest() -> IsolationForest:
    """IsolationForest: outliers."""
    return IsolationForest(n_estimators=4, max_samples=16, random_state=0)


@MODELS.exported("lightgbm", TWO)
def lightgbm_binary() -> LGBMClassifier:
    """LGBMClassifier, two classes."""
    return LGBMClassifier(**LIGHT)


@MODELS.exported("lightgbm", GAPS)
def lightgbm() -> LGBMClassifier:
    """LGBMClassifier, three classes, missing values."""
    return LGBMClassifier(**LIGHT)


@MODELS.exported("lightgbm", DIABETES)
def lightgbm_regressor() -> LGBMRegressor:
    """LGBMRegressor."""
    return LGBMRegressor(**LIGHT)


@MODELS.exported("lightgbm", RANKED, group=[10] * 12)
def lightgbm_ranker() -> LGBMRanker:
    """LGBMRanker."""
    return LGBMRanker(**LIGHT)


@MODELS.exported("xgboost", GAPS_OF_TWO)
def xgboost_binary() -> XGBClassifier:
    """XGBClassifier, two classes, missing values."""
    return XGBClassifier(**EXTREME)


@MODELS.exported("xgboost", IRIS)
def xgboost() -> XGBClassifier:
    """XGBClassifier, three classes."""
    return XGBClassifier(**EXTREME)


@MODELS.exported("xgboost", DIABETES)
def xgboost_regressor() -> XGBRegressor:
    """XGBRegressor."""
    return XGBRegressor(**EXTREME)


@MODELS.exported("catboost", GAPS_OF_TWO)
def catboost_binary() -> CatBoostClassifier:
    """CatBoostClassifier, two classes: votes w and -w, missing values."""
    return CatBoostClassifier(**CAT)


@MODELS.exported("catboost", IRIS)
def catboost() -> CatBoostClassifier:
    """CatBoostClassifier, three classes."""
    return CatBoostClassifier(**CAT)


@MODELS.exported("catboost", DIABETES)
def catboost_regressor() -> CatBoostRegressor:
    """CatBoostRegressor."""
    return CatBoostRegressor(**CAT)
