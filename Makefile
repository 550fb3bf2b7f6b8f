# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Each target does its own set-up and can be run again.

SHELL := /bin/bash
PY := .venv/bin/python
STEP := tools/step
# Of MORE_WITHIN, which includes the set-up.
started := $(shell date +%s)

# Bazel and pip keep their caches there.
export HOME ?= $(CURDIR)/.build/home
# One that is set for another project must not leak into ours.
unexport PYTHONPATH
unexport PYTHONHOME

.PHONY: help setup setup-build setup-tf wheel wheels demo test test-all check extensive
.PHONY: bench lint format sanitize clean distclean

help:
	@echo 'make demo      trains a CTR model: the way to see what this is'
	@echo 'make test      the tests, and the installed wheel; make check: the fast part'
	@echo 'make test-all  also the extensive tests, the sanitizers and TensorFlow 2.x: hours'
	@echo 'make wheel     leaves the wheel in dist/; make wheels: the addons'"'"' wheels too'
	@echo 'make demo TF=2.15 (also wheel, wheels, test): the same on TensorFlow 2.11, 2.15 or 2.21'
	@echo 'make bench     measures against stock TensorFlow, into benchmarks/results/'
	@echo 'make lint      format and style; make format: mends the format'
	@echo 'make sanitize  the engine under AddressSanitizer and ThreadSanitizer'
	@echo 'make setup     all that the others need, once; make clean, make distclean: remove it'

setup:
	@$(STEP) setup tools/setup/setup.sh all

# Without Horovod and the packages of tests, which take minutes to compile or fetch.
setup-build:
	@$(STEP) setup tools/setup/setup.sh build

# With TF=2.15 (or another version of tensorflow_versions.json) the same beside 1.15: in an
# environment of its own, .build/tf-2.15, with the wheels in a folder of their own, since pip
# cannot choose between wheels for several TensorFlows.
ifndef TF
ready := setup-build
bazel := bazel
bin := bazel-bin
dist := dist
demo := .build/demo
tf_py := $(PY)
else
ready := setup-tf
bazel := tools/setup/bazel_for.sh $(TF)
bin := .build/tf-$(TF)/bazel-bin
dist := dist/tf$(TF)
demo := .build/demo-$(TF)
tf_py := .build/tf-$(TF)/bin/python
endif

setup-tf:
	@$(STEP) system tools/setup/system_packages.sh build
	@$(STEP) setup tools/setup/other_tensorflow.sh $(TF)

wheel: $(ready)
	@$(STEP) wheel bash -c '$(bazel) build //tools/pip_package:build_sok && rm -f $(dist)/sok_stock_tf-*.whl && $(bin)/tools/pip_package/build_sok $(dist)'

wheels: $(ready)
	@$(STEP) wheels bash -c '$(bazel) build $(foreach w,sok hps hugectr serving,//tools/pip_package:build_$(w)) && rm -f $(dist)/*.whl && for w in sok hps hugectr serving; do $(bin)/tools/pip_package/build_$$w $(dist) || exit 1; done'

# Its wheel may lack the CUDA library, so it is not left in dist/
demo: $(ready)
	@$(STEP) wheel tools/pip_package/demo_wheel.sh $(demo) $(TF)
	@$(STEP) install $(tf_py) -m pip install -q --disable-pip-version-check --force-reinstall --no-deps $(demo)/sok_stock_tf-*.whl
	@$(STEP) demo $(tf_py) examples/train_ctr.py --demo
ifdef TF
	@$(STEP) keras $(tf_py) examples/train_keras.py
endif

# ALSO=2.15: then the tests of eager execution and Keras on that TensorFlow. MORE_WITHIN: the
# parts after the tests of 1.15 are interrupted so many minutes after the start of make.
test: $(if $(TF),setup-tf,setup)
	@$(tf_py) tools/testing/run_tests.py test $(if $(TF),--tensorflow=$(TF)) $(if $(ALSO),--also_eager_on=$(ALSO)) $(if $(MORE),--more) $(if $(MORE_WITHIN),--more_within=$(MORE_WITHIN) --started=$(started))

# The versions of the list but 1.15.
others = $(shell sed -n 's/^  "\(2[0-9.]*\)".*/\1/p' python/embedding_variable/tensorflow_versions.json)

test-all:
	$(MAKE) test MORE=1
	for version in $(others); do $(MAKE) test TF=$$version || exit 1; done

check: setup
	@$(PY) tools/testing/run_tests.py check

extensive: setup
	@$(PY) tools/testing/run_tests.py extensive

sanitize: setup
	@$(PY) tools/testing/run_tests.py sanitize

bench: setup wheel
	@$(STEP) install $(PY) -m pip install -q --disable-pip-version-check --force-reinstall --no-deps dist/sok_stock_tf-*.whl
	@$(STEP) bench $(PY) benchmarks/run.py

lint: setup
	@$(STEP) lint $(PY) tools/lint/lint.py

format: setup
	@$(STEP) format $(PY) tools/lint/lint.py --fix

# The compiled Horovod and the environments of the installed tests are kept.
clean:
	@if command -v bazel >/dev/null; then bazel clean --expunge; fi
	rm -rf .venv .bazelrc.user .build/*.stamp dist

distclean: clean
	rm -rf .build
