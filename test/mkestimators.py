"""Trained estimators as ONNX models, with inputs and what ONNX Runtime answers: OUT/NAME/{model.onnx,test_data_set_0/*.pb}, OUT/cases.json.

Runs with the Python of build/venv: mkestimators.py OUT. Needs the packages of test/requirements-ml.txt. Inputs are rounded so that
many equal a threshold; the boosters get NaN.
"""
import json
import os
import sys
import warnings

import lightgbm
import numpy as np
import onnx
import onnxmltools
import onnxruntime as ort
import xgboost
from onnx import numpy_helper
from onnxmltools.convert.common.data_types import FloatTensorType
from skl2onnx import to_onnx
from sklearn import (cluster, decomposition, discriminant_analysis, ensemble, gaussian_process, impute, linear_model, naive_bayes, neighbors,
                     neural_network, pipeline, preprocessing, svm, tree)
from sklearn.datasets import make_classification

warnings.filterwarnings("ignore")
ort.set_default_logger_severity(4)
ROWS, FEATURES, SHOWN = 300, 8, 50
X, THREE = make_classification(ROWS, FEATURES, n_informative=5, n_classes=3, random_state=0)
X = X.astype(np.float32).round(2)
TWO = (THREE > 0).astype(int)
REAL = X @ np.arange(FEATURES) + np.sin(X[:, 0]) * 3
GAPS = X.copy()
GAPS[::7, 2] = np.nan
GAPS[::5, 4] = np.nan


def classifiers():
    seed = {"random_state": 0}
    for kind, y in (("three", THREE), ("two", TWO)):
        yield f"logistic_{kind}", linear_model.LogisticRegression(), y
        yield f"sgd_{kind}", linear_model.SGDClassifier(**seed), y
        yield f"ridge_{kind}", linear_model.RidgeClassifier(), y
        yield f"linearsvc_{kind}", svm.LinearSVC(), y
        yield f"tree_{kind}", tree.DecisionTreeClassifier(**seed), y
        yield f"forest_{kind}", ensemble.RandomForestClassifier(20, **seed), y
        yield f"extra_{kind}", ensemble.ExtraTreesClassifier(20, **seed), y
        yield f"boost_{kind}", ensemble.GradientBoostingClassifier(n_estimators=20, **seed), y
        yield f"ada_{kind}", ensemble.AdaBoostClassifier(n_estimators=10, **seed), y
        yield f"svc_{kind}", svm.SVC(), y
        yield f"svcp_{kind}", svm.SVC(probability=True, **seed), y
        yield f"nusvc_{kind}", svm.NuSVC(), y
        yield f"bayes_{kind}", naive_bayes.GaussianNB(), y
        yield f"neighbors_{kind}", neighbors.KNeighborsClassifier(), y
        yield f"mlp_{kind}", neural_network.MLPClassifier(max_iter=50, **seed), y
        yield f"lda_{kind}", discriminant_analysis.LinearDiscriminantAnalysis(), y
    for kernel in ("linear", "poly", "sigmoid"):
        yield f"svc_{kernel}", svm.SVC(kernel=kernel), THREE
    yield "bernoulli", naive_bayes.BernoulliNB(), THREE
    yield "bagging", ensemble.BaggingClassifier(n_estimators=5, **seed), THREE
    yield "pipeline", pipeline.make_pipeline(preprocessing.StandardScaler(), decomposition.PCA(4), linear_model.LogisticRegression()), THREE


def others():
    seed = {"random_state": 0}
    for name, e in (("linear", linear_model.LinearRegression()), ("ridge", linear_model.Ridge()), ("lasso", linear_model.Lasso()),
                    ("treer", tree.DecisionTreeRegressor(**seed)), ("forestr", ensemble.RandomForestRegressor(20, **seed)),
                    ("boostr", ensemble.GradientBoostingRegressor(n_estimators=20, **seed)), ("svr", svm.SVR()), ("nusvr", svm.NuSVR()),
                    ("neighborsr", neighbors.KNeighborsRegressor()), ("mlpr", neural_network.MLPRegressor(max_iter=50, **seed)),
                    ("gauss", gaussian_process.GaussianProcessRegressor())):
        yield name, e, REAL
    for name, e in (("isolation", ensemble.IsolationForest(n_estimators=10, **seed)), ("oneclass", svm.OneClassSVM()),
                    ("kmeans", cluster.KMeans(3, n_init=2, **seed)), ("pca", decomposition.PCA(3)), ("standard", preprocessing.StandardScaler()),
                    ("minmax", preprocessing.MinMaxScaler()), ("robust", preprocessing.RobustScaler()), ("norm", preprocessing.Normalizer()),
                    ("normmax", preprocessing.Normalizer("max")), ("binarizer", preprocessing.Binarizer()), ("imputer", impute.SimpleImputer()),
                    ("polynomial", preprocessing.PolynomialFeatures(2)), ("bins", preprocessing.KBinsDiscretizer(3, encode="onehot-dense"))):
        yield name, e, None


def boosters():
    kind = [("x", FloatTensorType([None, FEATURES]))]
    for name, e, y in (("lgbm_three", lightgbm.LGBMClassifier, THREE), ("lgbm_two", lightgbm.LGBMClassifier, TWO), ("lgbm_real", lightgbm.LGBMRegressor, REAL)):
        yield name, onnxmltools.convert_lightgbm(e(n_estimators=15, verbose=-1).fit(GAPS, y), initial_types=kind, zipmap=False, target_opset=15)
    for name, e, y in (("xgb_three", xgboost.XGBClassifier, THREE), ("xgb_two", xgboost.XGBClassifier, TWO), ("xgb_real", xgboost.XGBRegressor, REAL),
                       ("xgb_forest", xgboost.XGBRFClassifier, TWO)):
        yield name, onnxmltools.convert_xgboost(e(n_estimators=10).fit(GAPS, y), initial_types=kind, target_opset=15)


def models():
    target = {"": 18, "ai.onnx.ml": 3}
    for name, e, y in [*classifiers(), *others()]:
        e.fit(X) if y is None else e.fit(X, y)
        try:
            model = to_onnx(e, X[:1], options={id(e): {"zipmap": False}}, target_opset=target)
        except NameError:  # it has no such option
            model = to_onnx(e, X[:1], target_opset=target)
        yield name, model, X[:SHOWN]
    for name, model in boosters():
        yield name, model, GAPS[:SHOWN]


def main(out):
    table = []
    for name, model, x in models():
        data = os.path.join(out, name, "test_data_set_0")
        os.makedirs(data)
        key = model.graph.input[0].name
        answers = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, {key: x})
        onnx.save(model, os.path.join(out, name, "model.onnx"))
        onnx.save_tensor(numpy_helper.from_array(x, key), os.path.join(data, "input_0.pb"))
        for i, (info, value) in enumerate(zip(model.graph.output, answers)):
            onnx.save_tensor(numpy_helper.from_array(np.asarray(value), info.name), os.path.join(data, f"output_{i}.pb"))
        table.append({"name": name, "rtol": 1e-5, "atol": 1e-5})
    with open(os.path.join(out, "cases.json"), "w") as f:
        json.dump(table, f)


main(sys.argv[1])
