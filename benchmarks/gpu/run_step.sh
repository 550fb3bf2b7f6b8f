#!/bin/bash
# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Builds the sparse step on the GPU, checks it and times it. Run from the
# repository's root:
#
#   benchmarks/gpu/run_step.sh [build] [test] [sanitize] [bench] [profile]
#
# No argument: build (where there is a Bazel), test, bench. "build" needs nvcc and
# leaves the programs in $BUILD_DIR (.build/gpu_step); the others need that folder
# and a GPU. PROFILE: DIM:HOT:zipf|uniform of what is profiled.
set -u -o pipefail
cd "$(dirname "$0")/../.."
source benchmarks/gpu/programs.sh
build=${BUILD_DIR:-.build/gpu_step}
out=${OUT:-$build}
mkdir -p "$build" "$out"
steps=${*:-$(default_build) test bench}
has() { [[ " $steps " == *" $1 "* ]]; }

if has build; then
  build_programs "$build" //benchmarks/gpu:step //benchmarks/gpu:step_grow \
    //kernels/engine/gpu_resident/step:sparse_step_test_program || exit 1
fi
if [[ $steps != build ]]; then
  need_programs "$build" step step_grow sparse_step_test || exit 1
fi

if has test; then
  $build/sparse_step_test 2>&1 | tee "$out/sparse_step_test.log" || exit 1
fi

if has sanitize; then
  for tool in ${SANITIZERS:-memcheck}; do
    echo "== $tool"
    timeout 200 compute-sanitizer --tool $tool --error-exitcode 9 \
      $build/sparse_step_test --small 2>&1 | tee "$out/step_$tool.log" \
      | tail -20 || exit 1
  done
fi

if has bench; then
  nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
  git log -1 --format='commit %h' 2>/dev/null
  $build/step ${STEPS:-} | tee "$out/gpu_step.txt" || exit 1
  $build/step_grow | tee "$out/gpu_step_grow.txt" || exit 1
fi

# Time and bytes of each kernel of a timed step.
if has profile; then
  metrics=gpu__time_duration.sum,dram__bytes_read.sum,dram__bytes_write.sum
  metrics+=,sm__warps_active.avg.pct_of_peak_sustained_active
  for m in ${PROFILE:-16:1:zipf}; do
    echo "== $m"
    timeout 150 ncu --clock-control none --profile-from-start off --csv \
      --launch-count ${COUNT:-8} --launch-skip ${SKIP:-8} \
      --metrics $metrics "$build/step" $m >"$out/ncu_step_${m//:/_}.csv" 2>&1
    python3 - "$out/ncu_step_${m//:/_}.csv" <<'PYTHON'
import collections, csv, sys
lines = [l for l in open(sys.argv[1]) if l.startswith('"')]
rows = collections.OrderedDict()
for r in csv.DictReader(lines):
  name = r['Kernel Name'].split('(')[0][:60]
  rows.setdefault((r['ID'], name), {})[r['Metric Name']] = (
      r['Metric Value'] + ' ' + r['Metric Unit'])
for (i, name), m in rows.items():
  print(i, name, *[v for _, v in sorted(m.items())], sep=' | ')
PYTHON
  done
fi
