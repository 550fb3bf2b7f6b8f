#!/bin/bash
# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Installs what tests need into .build/tf-VERSION, unless it is there. Args: VERSION,
# such as 2.15.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
source tools/setup/common.sh

version="$1"
requirements="tools/setup/tensorflow_pins/tests-${version}.txt"
environment=".build/tf-${version}"
[[ -f "${requirements}" ]] || die "There are no packages of tests for TensorFlow '${version}'."
[[ -f "${environment}/installed.txt" ]] ||
  die "There is no ${environment}: run tools/setup/other_tensorflow.sh ${version} first."
cmp -s "${requirements}" "${environment}/tests.txt" && exit 0
logged ".build/pip-${version}.log" \
  "pip could not install the packages of tests: is the network (or the package index) available?" \
  "${environment}/bin/python" -m pip --disable-pip-version-check --no-input install \
  --no-deps -r "${requirements}"
cp "${requirements}" "${environment}/tests.txt"
# Bazel runs tests again whose packages have changed.
"${environment}/bin/python" tools/setup/configure.py --output "${environment}/bazelrc"
