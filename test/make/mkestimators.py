"""Writes trained estimators of scikit-learn, XGBoost and LightGBM as ONNX models, with inputs and two sets of expected outputs.

mkestimators.py OUT [NAME] writes OUT/NAME/{model.onnx,ort/*.pb,library/*.pb} and OUT/cases.json.
Runs with the Python of build/venv and the packages of test/requirements-ml.txt.
`ort` has the results of ONNX Runtime, `library` those of the estimator.
The inputs contain the thresholds of the trees and their neighbors; some have NaN if the estimator accepts it.
If ONNX Runtime and the library disagree, the converter is wrong, and the row of the estimator gives the reason.
A difference without a reason ends the script.
"""
import json
import os
import sys
import warnings
from dataclasses import dataclass, field

import lightgbm
import numpy as np
import onnx
import onnxmltools
import scipy.sparse
import xgboost
from onnx import helper, numpy_helper
from onnxmltools.convert.common.data_types import FloatTensorType as BoosterType
from skl2onnx import to_onnx
from skl2onnx.common import _container
from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType, Int64TensorType, StringTensorType
from sklearn import (calibration, cluster, compose, cross_decomposition, decomposition, discriminant_analysis, ensemble,
                     feature_extraction, feature_selection, gaussian_process, impute, linear_model, mixture, model_selection,
                     multiclass, multioutput, naive_bayes, neighbors, neural_network, pipeline, preprocessing,
                     random_projection, svm, tree)
from sklearn.datasets import make_classification

import oracle

warnings.filterwarnings("ignore")
ROWS, FEATURES, SHOWN, LIMIT = 300, 8, 40, 1e-5
SEED = {"random_state": 0}
X, THREE = make_classification(ROWS, FEATURES, n_informative=5, n_classes=3, random_state=0)
X = (np.round(X * 64) / 64).astype(np.float32)  # so that midpoints between two values are exact in f32
TWO = (THREE > 0).astype(int)
NAMES = np.array(["low", "mid", "high"])[THREE]
REAL = (X @ np.arange(FEATURES) + np.sin(X[:, 0]) * 3) / 10
PAIR = np.stack([REAL, REAL ** 2], 1)
SMALL = np.abs(X).round()  # counts
GAPS = X.copy()
GAPS[::7, 2] = np.nan
GAPS[::5, 4] = np.nan
COLOURS = np.array(["red", "green", "", "blue", "grün"], dtype=object)[(SMALL[:, :2] % 5).astype(int)]
TEXTS = np.array([" ".join(np.array("Every good model, like some small tree: has leaves; not one root.".split())[r > 0.3])
                  for r in np.abs(np.tile(X, (1, 2)))[:, :12]], dtype=object)


@dataclass
class Case:
    name: str
    e: object
    y: object = None
    x: object = None          # training data and inputs; X if None
    says: tuple = ()          # methods that compute the outputs of the model; empty: found automatically
    types: object = None      # inputs of the model, unless it has one f32 tensor
    options: dict = field(default_factory=dict)
    opset: int = 18
    apart: str = ""           # why the converted model and the library disagree
    model: object = None      # another converter is used


def sides(e, x):
    """The decision between two classes as converters write it: the score of the first and of the second."""
    d = e.decision_function(x)
    return np.stack([d, -d], 1)


def path(e, x):
    """The path of a row through the nodes, as text of 0 and 1."""
    return np.array(["".join(str(int(v)) for v in row) for row in e.decision_path(x).toarray()], object)


def classifiers():
    for kind, y in (("three", THREE), ("two", TWO)):
        yield Case(f"logistic_{kind}", linear_model.LogisticRegression(), y)
        yield Case(f"sgd_{kind}", linear_model.SGDClassifier(**SEED), y)
        yield Case(f"ridgeclass_{kind}", linear_model.RidgeClassifier(), y)
        yield Case(f"linearsvc_{kind}", svm.LinearSVC(), y)
        yield Case(f"tree_{kind}", tree.DecisionTreeClassifier(**SEED), y)
        yield Case(f"forest_{kind}", ensemble.RandomForestClassifier(10, **SEED), y)
        yield Case(f"boost_{kind}", ensemble.GradientBoostingClassifier(n_estimators=10, **SEED), y)
        yield Case(f"hist_{kind}", ensemble.HistGradientBoostingClassifier(max_iter=10, **SEED), y, GAPS)
        yield Case(f"ada_{kind}", ensemble.AdaBoostClassifier(n_estimators=5, **SEED), y)
        yield Case(f"svc_{kind}", svm.SVC(), y, says=("predict", sides) if kind == "two" else ())
        yield Case(f"svcp_{kind}", svm.SVC(probability=True, **SEED), y)
        yield Case(f"nusvc_{kind}", svm.NuSVC(), y, says=("predict", sides) if kind == "two" else ())
        yield Case(f"gaussnb_{kind}", naive_bayes.GaussianNB(), y)
        yield Case(f"neighbors_{kind}", neighbors.KNeighborsClassifier(), y)
        yield Case(f"mlp_{kind}", neural_network.MLPClassifier((16,), max_iter=50, **SEED), y)
        yield Case(f"lda_{kind}", discriminant_analysis.LinearDiscriminantAnalysis(), y,
                   apart="the converter takes the softmax of two decisions, the library the logistic of one" if kind == "two" else "")
    for kernel in ("linear", "poly", "sigmoid"):
        yield Case(f"svc_{kernel}", svm.SVC(kernel=kernel), THREE)
    yield Case("perceptron", linear_model.Perceptron(**SEED), THREE)
    yield Case("logistic_names", linear_model.LogisticRegression(), NAMES)
    yield Case("logistic_ovr", multiclass.OneVsRestClassifier(linear_model.LogisticRegression()), THREE)
    yield Case("ovo", multiclass.OneVsOneClassifier(linear_model.LogisticRegression()), THREE)
    yield Case("tree_names", tree.DecisionTreeClassifier(max_depth=4, **SEED), NAMES)
    yield Case("forest_gaps", ensemble.RandomForestClassifier(10, **SEED), THREE, GAPS, apart="the converter does not write where missing values go")
    yield Case("extratree", tree.ExtraTreeClassifier(**SEED), THREE)
    yield Case("extra", ensemble.ExtraTreesClassifier(10, **SEED), THREE)
    yield Case("bernoullinb", naive_bayes.BernoulliNB(), THREE)
    yield Case("multinomialnb", naive_bayes.MultinomialNB(), THREE, SMALL)
    yield Case("complementnb", naive_bayes.ComplementNB(), THREE, SMALL)
    yield Case("categoricalnb", naive_bayes.CategoricalNB(min_categories=20), THREE, SMALL)
    yield Case("qda", discriminant_analysis.QuadraticDiscriminantAnalysis(reg_param=0.1), THREE)
    yield Case("bagging", ensemble.BaggingClassifier(n_estimators=5, **SEED), THREE)
    some = [("a", linear_model.LogisticRegression()), ("b", tree.DecisionTreeClassifier(max_depth=3, **SEED)), ("c", naive_bayes.GaussianNB())]
    yield Case("voting_soft", ensemble.VotingClassifier(some, voting="soft", flatten_transform=False), THREE)
    yield Case("voting_hard", ensemble.VotingClassifier(some, flatten_transform=False), THREE, says=("predict",))
    yield Case("stacking", ensemble.StackingClassifier(some, cv=3), THREE)
    yield Case("calibrated_sigmoid", calibration.CalibratedClassifierCV(svm.LinearSVC(), cv=2), THREE)
    yield Case("calibrated_isotonic", calibration.CalibratedClassifierCV(naive_bayes.GaussianNB(), method="isotonic", cv=2), THREE,
               apart="the converter takes the nearest point of the curve, the library interpolates")
    yield Case("multioutput", multioutput.MultiOutputClassifier(linear_model.LogisticRegression()), np.stack([TWO, 1 - TWO], 1))
    yield Case("search", model_selection.GridSearchCV(linear_model.LogisticRegression(), {"C": [0.1, 1]}, cv=2), THREE)
    leaves = tree.DecisionTreeClassifier(max_depth=4, **SEED)
    yield Case("leaf", leaves, THREE, options={"zipmap": False, "decision_leaf": True}, says=("predict", "predict_proba", "apply"))
    yield Case("path", leaves, THREE, options={"zipmap": False, "decision_path": True}, says=("predict", "predict_proba", path))
    yield Case("forest_int", ensemble.RandomForestClassifier(5, **SEED), THREE, SMALL.astype(np.int64), types=[("x", Int64TensorType([None, FEATURES]))])
    yield Case("zipmap", linear_model.LogisticRegression(), THREE, options={"zipmap": True})
    yield Case("zipmap_names", linear_model.LogisticRegression(), NAMES, options={"zipmap": True})
    yield Case("zipmap_columns", linear_model.LogisticRegression(), NAMES, options={"zipmap": "columns"})
    yield Case("raw_scores", linear_model.LogisticRegression(), THREE, options={"raw_scores": True}, says=("predict", "decision_function"))
    yield Case("isolation", ensemble.IsolationForest(n_estimators=10, **SEED), says=("predict", "decision_function"))
    yield Case("oneclass", svm.OneClassSVM(nu=0.1), says=("predict", "decision_function"))
    yield Case("sgdoneclass", linear_model.SGDOneClassSVM(**SEED), says=("predict", "decision_function"))
    yield Case("outlier", neighbors.LocalOutlierFactor(novelty=True), says=("predict", "decision_function"))


def regressors():
    for name, e in (("linear", linear_model.LinearRegression()), ("ridge", linear_model.Ridge()), ("lasso", linear_model.Lasso(0.01)),
                    ("elastic", linear_model.ElasticNet(0.01)), ("bayesridge", linear_model.BayesianRidge()), ("huber", linear_model.HuberRegressor()),
                    ("sgdr", linear_model.SGDRegressor(**SEED)), ("theilsen", linear_model.TheilSenRegressor(**SEED)),
                    ("ransac", linear_model.RANSACRegressor(**SEED)), ("linearsvr", svm.LinearSVR(**SEED)),
                    ("treer", tree.DecisionTreeRegressor(**SEED)), ("forestr", ensemble.RandomForestRegressor(10, **SEED)),
                    ("extrar", ensemble.ExtraTreesRegressor(10, **SEED)), ("boostr", ensemble.GradientBoostingRegressor(n_estimators=10, **SEED)),
                    ("adar", ensemble.AdaBoostRegressor(n_estimators=5, **SEED)), ("baggingr", ensemble.BaggingRegressor(n_estimators=5, **SEED)),
                    ("svr", svm.SVR()), ("svr_poly", svm.SVR(kernel="poly", degree=2)), ("nusvr", svm.NuSVR()),
                    ("neighborsr", neighbors.KNeighborsRegressor()),
                    ("quantiler", linear_model.QuantileRegressor(alpha=0.01)), ("huberboost", ensemble.GradientBoostingRegressor(n_estimators=5, loss="huber", **SEED)),
                    ("mlpr", neural_network.MLPRegressor(hidden_layer_sizes=(16,), max_iter=50, **SEED)),
                    ("pls", cross_decomposition.PLSRegression(3)),
                    ("votingr", ensemble.VotingRegressor([("a", linear_model.Ridge()), ("b", tree.DecisionTreeRegressor(max_depth=3, **SEED))])),
                    ("stackingr", ensemble.StackingRegressor([("a", linear_model.Ridge()), ("b", tree.DecisionTreeRegressor(max_depth=3, **SEED))], cv=3))):
        yield Case(name, e, REAL)
    yield Case("histr", ensemble.HistGradientBoostingRegressor(max_iter=10, **SEED), REAL, GAPS)
    double = {"x": X.astype(np.float64), "types": [("x", DoubleTensorType([None, FEATURES]))]}
    yield Case("logistic_double", linear_model.LogisticRegression(), THREE, **double)
    yield Case("gpr", gaussian_process.GaussianProcessRegressor(alpha=0.1), REAL, **double)
    yield Case("gpr_std", gaussian_process.GaussianProcessRegressor(gaussian_process.kernels.RBF() + gaussian_process.kernels.DotProduct(), alpha=0.1), REAL,
               options={"return_std": True}, says=(lambda e, x: e.predict(x, return_std=True)[0], lambda e, x: e.predict(x, return_std=True)[1]), **double)
    for name, e in (("poisson", linear_model.PoissonRegressor()), ("gamma", linear_model.GammaRegressor()), ("tweedie", linear_model.TweedieRegressor(power=1.5))):
        yield Case(name, e, np.abs(REAL) + 0.5)
    yield Case("treer_pair", tree.DecisionTreeRegressor(max_depth=5, **SEED), PAIR)
    yield Case("multioutputr", multioutput.MultiOutputRegressor(svm.SVR()), PAIR)


def transformers():
    for name, e in (("pca", decomposition.PCA(3)), ("ipca", decomposition.IncrementalPCA(3)), ("kpca", decomposition.KernelPCA(3, kernel="rbf", **SEED)),
                    ("svd", decomposition.TruncatedSVD(3, **SEED)), ("standard", preprocessing.StandardScaler()), ("minmax", preprocessing.MinMaxScaler(clip=True)),
                    ("maxabs", preprocessing.MaxAbsScaler()), ("robust", preprocessing.RobustScaler()), ("norm1", preprocessing.Normalizer("l1")),
                    ("norm2", preprocessing.Normalizer()), ("binarizer", preprocessing.Binarizer(threshold=0.25)),
                    ("polynomial", preprocessing.PolynomialFeatures(2)), ("interactions", preprocessing.PolynomialFeatures(3, interaction_only=True)),
                    ("bins_ordinal", preprocessing.KBinsDiscretizer(4, encode="ordinal")), ("bins_onehot", preprocessing.KBinsDiscretizer(3, encode="onehot-dense")),
                    ("power", preprocessing.PowerTransformer()), ("quantile", preprocessing.QuantileTransformer(n_quantiles=20, **SEED)),
                    ("projection", random_projection.GaussianRandomProjection(3, **SEED)), ("variance", feature_selection.VarianceThreshold(1.0)),
                    ("leaves", ensemble.RandomTreesEmbedding(3, max_depth=3, sparse_output=False, **SEED)),
                    ("square", preprocessing.FunctionTransformer())):
        yield Case(name, e)
    yield Case("normmax", preprocessing.Normalizer("max"), apart="the operator takes the largest value, the library the largest magnitude")
    yield Case("selectk", feature_selection.SelectKBest(k=3), THREE)
    yield Case("rfe", feature_selection.RFE(linear_model.Ridge(), n_features_to_select=3), REAL, says=("transform",))
    yield Case("selectfrom", feature_selection.SelectFromModel(linear_model.Lasso(0.1)), REAL)
    yield Case("nca", neighbors.NeighborhoodComponentsAnalysis(2, max_iter=5, **SEED), THREE, says=("transform",))
    for name, e in (("imputer_mean", impute.SimpleImputer()), ("imputer_median", impute.SimpleImputer(strategy="median")),
                    ("imputer_constant", impute.SimpleImputer(strategy="constant", fill_value=-1.5))):
        yield Case(name, e, x=GAPS)
    for name, e in (("kmeans", cluster.KMeans(3, n_init=2, **SEED)), ("minikmeans", cluster.MiniBatchKMeans(3, n_init=2, **SEED))):
        yield Case(name, e, says=("predict", "transform"))
    yield Case("gmm", mixture.GaussianMixture(3, **SEED), says=("predict", "predict_proba"))
    yield Case("gmm_diag", mixture.GaussianMixture(3, covariance_type="diag", **SEED), says=("predict", "predict_proba"))
    yield Case("bgmm", mixture.BayesianGaussianMixture(n_components=3, **SEED), says=("predict", "predict_proba"))


def words():
    """Strings, and columns of several types."""
    strings = [("x", StringTensorType([None, 2]))]
    yield Case("onehot", preprocessing.OneHotEncoder(sparse_output=False, handle_unknown="ignore"), x=COLOURS, types=strings)
    yield Case("onehot_drop", preprocessing.OneHotEncoder(sparse_output=False, drop="first"), x=COLOURS, types=strings)
    yield Case("onehot_numbers", preprocessing.OneHotEncoder(sparse_output=False, handle_unknown="ignore"), x=SMALL.astype(np.int64),
               types=[("x", Int64TensorType([None, FEATURES]))])
    yield Case("ordinal", preprocessing.OrdinalEncoder(dtype=np.float32), x=COLOURS, types=strings)
    yield Case("ordinal_numbers", preprocessing.OrdinalEncoder(dtype=np.float32), x=SMALL)
    yield Case("target", preprocessing.TargetEncoder(cv=2, **SEED), TWO, COLOURS, types=strings, says=("transform",))
    yield Case("labels", preprocessing.LabelEncoder(), x=COLOURS[:, 0], types=[("x", StringTensorType([None]))])
    yield Case("labelbinarizer", preprocessing.LabelBinarizer(), x=THREE.astype(np.int64), types=[("x", Int64TensorType([None]))])
    yield Case("imputer_words", impute.SimpleImputer(strategy="most_frequent", missing_values=""), x=COLOURS, types=strings)
    text = [("x", StringTensorType([None]))]
    for name, e in (("count", feature_extraction.text.CountVectorizer()), ("count_pairs", feature_extraction.text.CountVectorizer(ngram_range=(1, 2), lowercase=False)),
                    ("count_binary", feature_extraction.text.CountVectorizer(binary=True, stop_words=["good"])),
                    ("tfidf", feature_extraction.text.TfidfVectorizer()), ("tfidf_sublinear", feature_extraction.text.TfidfVectorizer(sublinear_tf=True, norm="l1")),
                    ("tfidf_chars", feature_extraction.text.TfidfVectorizer(analyzer="char", ngram_range=(1, 2)))):
        yield Case(name, e, x=TEXTS, types=text, options={"locale": "C"})
    yield Case("texts", pipeline.make_pipeline(feature_extraction.text.TfidfVectorizer(), linear_model.LogisticRegression()), THREE, TEXTS, types=text, options={"locale": "C"})
    yield Case("texts_nb", pipeline.make_pipeline(feature_extraction.text.CountVectorizer(), naive_bayes.MultinomialNB()), THREE, TEXTS, types=text, options={"locale": "C"})
    yield Case("pipeline", pipeline.make_pipeline(preprocessing.StandardScaler(), decomposition.PCA(4), linear_model.LogisticRegression()), THREE)
    yield Case("union", pipeline.make_pipeline(pipeline.make_union(decomposition.PCA(2), preprocessing.MinMaxScaler()), linear_model.Ridge()), REAL)
    numbers = pipeline.make_pipeline(impute.SimpleImputer(), preprocessing.StandardScaler())
    columns = compose.ColumnTransformer([("n", numbers, [0, 1, 2]), ("b", preprocessing.KBinsDiscretizer(3, encode="onehot-dense"), [3]), ("p", "passthrough", [4, 5])])
    yield Case("columns", pipeline.make_pipeline(columns, ensemble.GradientBoostingClassifier(n_estimators=5, **SEED)), THREE, X)


def booster(name, e, y, convert, x=GAPS, apart="", **more):
    model = convert(e.fit(x, y), initial_types=[("x", BoosterType([None, FEATURES]))], target_opset=15, **more)
    return Case(name, e, y, x, model=model, apart=apart)


def boosters():
    light, xgb = onnxmltools.convert_lightgbm, onnxmltools.convert_xgboost
    quiet = {"n_estimators": 10, "verbose": -1}
    for name, y in (("three", THREE), ("two", TWO)):
        yield booster("lgbm_" + name, lightgbm.LGBMClassifier(**quiet), y, light, zipmap=False)
        yield booster("xgb_" + name, xgboost.XGBClassifier(n_estimators=10), y, xgb)
    yield booster("lgbm_real", lightgbm.LGBMRegressor(**quiet), REAL, light)
    yield booster("lgbm_poisson", lightgbm.LGBMRegressor(objective="poisson", **quiet), SMALL[:, 0], light)
    yield booster("lgbm_forest", lightgbm.LGBMRegressor(boosting_type="rf", bagging_freq=1, bagging_fraction=0.7, **quiet), REAL, light,
                  apart="the converter adds the trees of a forest, the library takes their mean")
    yield booster("lgbm_quantile", lightgbm.LGBMRegressor(objective="quantile", alpha=0.8, **quiet), REAL, light)
    kinds = X.copy()
    kinds[:, :2] = SMALL[:, :2] % 6
    few = lightgbm.LGBMClassifier(min_data_per_group=5, cat_smooth=1, max_cat_to_onehot=1, categorical_feature=[0, 1], **quiet)
    yield booster("lgbm_categories", few, THREE, light, x=kinds, zipmap=False)
    yield booster("lgbm_dart", lightgbm.LGBMClassifier(boosting_type="dart", **quiet), TWO, light, zipmap=False)
    yield booster("xgb_real", xgboost.XGBRegressor(n_estimators=10), REAL, xgb)
    yield booster("xgb_base", xgboost.XGBRegressor(n_estimators=10, base_score=3.5, max_depth=2), REAL, xgb)
    yield booster("xgb_forest", xgboost.XGBRFClassifier(n_estimators=10), TWO, xgb)
    yield booster("xgb_forestr", xgboost.XGBRFRegressor(n_estimators=10), REAL, xgb)
    yield booster("xgb_poisson", xgboost.XGBRegressor(n_estimators=10, objective="count:poisson"), SMALL[:, 0], xgb)
    yield booster("xgb_gamma", xgboost.XGBRegressor(n_estimators=10, objective="reg:gamma"), np.abs(REAL) + 0.5, xgb)


def opsets():
    """The same estimators as older converters wrote them."""
    for opset in (9, 11, 13, 15, 21):
        yield Case(f"logistic_opset{opset}", linear_model.LogisticRegression(), NAMES, opset=opset)
        yield Case(f"forestr_opset{opset}", ensemble.RandomForestRegressor(3, **SEED), REAL, opset=opset)
        yield Case(f"neighbors_opset{opset}", neighbors.KNeighborsClassifier(), THREE, opset=opset)


def whole(make):
    """make_node for converters that pass lists of numpy integers."""
    def inner(*args, **attrs):
        return make(*args, **{k: [int(i) for i in v] if isinstance(v, list) and v and isinstance(v[0], np.integer) else v for k, v in attrs.items()})
    return inner


_container.make_node = whole(_container.make_node)


def convert(case):
    x = X if case.x is None else case.x
    if case.model:
        return case.model
    case.e.fit(x) if case.y is None else case.e.fit(x, case.y)
    target = {"": case.opset, "ai.onnx.ml": 1 if case.opset < 11 else 3}
    kind = case.types or [("x", FloatTensorType([None, x.shape[1]]))]
    options = case.options or {"zipmap": False}
    part = case.e[0] if "locale" in options and hasattr(case.e, "steps") else case.e
    options = {id(part): options}
    if part is not case.e:
        options[id(case.e)] = {"zipmap": False}
    try:
        return to_onnx(case.e, initial_types=kind, options=options, target_opset=target)
    except NameError:  # it lacks this option
        return to_onnx(case.e, initial_types=kind, target_opset=target)


def thresholds(model):
    """Returns (feature, value) of the nodes of all trees, without the 1e-35 that LightGBM stores instead of zero and does not
    compare with."""
    for node in model.graph.node:
        a = {x.name: helper.get_attribute_value(x) for x in node.attribute}
        if "nodes_values" in a:
            yield from ((f, v) for f, v, m in zip(a["nodes_featureids"], a["nodes_values"], a["nodes_modes"]) if m != b"LEAF" and abs(v) > 1e-30)


def inputs(case, model):
    x = (X if case.x is None else case.x)[:SHOWN]
    edges = sorted(set(thresholds(model)))
    if edges and x.dtype == np.float32:
        rows = []
        for i, (f, v) in enumerate(edges[::max(1, len(edges) // 15)]):
            for value in (v, np.nextafter(np.float32(v), np.float32(9e9)), np.nextafter(np.float32(v), np.float32(-9e9))):
                if f < x.shape[1]:
                    rows.append(x[i % SHOWN].copy())
                    rows[-1][f] = value
        x = np.concatenate([x, rows])
    return x


def library(case, x, answers):
    """Returns the results of the estimator in the shapes of the model's outputs."""
    e = case.e
    says = case.says
    if not says:
        first = ("predict",) if hasattr(e, "predict") else ("transform",)
        scores = [m for m in ("predict_proba", "decision_function") if hasattr(e, m)]
        says = first + tuple(scores[:1] if len(answers) > 1 else ())
    got = [m(e, x) if callable(m) else getattr(e, m)(x) for m in says]
    if len(got) == 2 and isinstance(got[1], list):  # several outputs
        got[1] = np.stack(got[1])
    got = [g.toarray() if scipy.sparse.issparse(g) else np.asarray(g) for g in got]
    if case.options.get("zipmap") == "columns":
        got = [got[0], *got[1].T]
    out = []
    for g, a in zip(got, answers):
        if g.size * 2 == a.size and a.shape[1:] == (2,):  # a binary decision: the model returns both scores
            g = np.stack([-g.ravel(), g.ravel()], 1)
        out.append(g.reshape(a.shape).astype(a.dtype))
    return out


def message(a, name):
    """A tensor, a sequence of tensors, or the maps that ZipMap returns."""
    if not isinstance(a, list):
        return numpy_helper.from_array(a.astype(object) if a.dtype.kind == "U" else a, name)
    if not isinstance(a[0], dict):
        return numpy_helper.from_list(a, name)
    out = onnx.SequenceProto(name=name, elem_type=onnx.SequenceProto.MAP)
    for m in a:
        words = isinstance(next(iter(m)), str)
        out.map_values.append(onnx.MapProto(
            key_type=onnx.TensorProto.STRING if words else onnx.TensorProto.INT64, string_keys=[k.encode() for k in m] if words else [],
            keys=[] if words else list(m), values=numpy_helper.from_list([np.float32(v) for v in m.values()], "")))
    return out


def apart(a, b):
    if a.dtype.kind in "OUSib":
        return float((a != b).sum())
    with np.errstate(invalid="ignore"):
        return float(np.nanmax(np.abs(a - b) / np.maximum(1, np.abs(b)), initial=0)) if (np.isnan(a) == np.isnan(b)).all() else np.inf


def save(folder, feeds, answers):
    os.makedirs(folder)
    for what, values in (("input", feeds), ("output", answers)):
        for i, (name, a) in enumerate(values):
            with open(os.path.join(folder, f"{what}_{i}.pb"), "wb") as f:
                f.write(message(a, name).SerializeToString())


def write(case, out):
    model = convert(case)
    x = inputs(case, model)
    key = model.graph.input[0].name
    answers = oracle.session(model.SerializeToString()).run(None, {key: x})
    keys = [list(a[0]) if isinstance(a, list) and isinstance(a[0], dict) else None for a in answers]
    flat = [np.array([list(m.values()) for m in a], np.float32) if k else np.asarray(a) for a, k in zip(answers, keys)]
    own = library(case, x, flat)
    off = max(apart(a, b) for a, b in zip(flat, own))
    why = case.apart
    if why and off <= LIMIT or not why and off > 10 * LIMIT:
        raise SystemExit(f"{case.name}: ONNX Runtime is {off:.3g} apart from the library, but: {why or 'no reason is given'}")
    if not why and off > LIMIT:  # rounding depends on the machine
        why = f"ONNX Runtime itself is {off:.2g} apart from the library"
    folder = os.path.join(out, case.name)
    os.makedirs(folder)
    onnx.save(model, os.path.join(folder, "model.onnx"))
    names = [o.name for o in model.graph.output]
    save(os.path.join(folder, "ort"), [(key, x)], list(zip(names, answers)))
    if not why:
        own = [[dict(zip(k, row)) for row in g] if k else list(g) if isinstance(a, list) else g for g, k, a in zip(own, keys, answers)]
        save(os.path.join(folder, "library"), [(key, x)], list(zip(names, own + answers[len(own):])))
    return {"name": case.name, "apart": why}


def main(out, only=""):
    makers = (classifiers, regressors, transformers, words, boosters, opsets)
    table = [write(case, out) for make in makers for case in make() if only in case.name]
    with open(os.path.join(out, "cases.json"), "w") as f:
        json.dump(table, f)


main(*sys.argv[1:])
