#!/bin/bash
# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Builds, checks and times the GPU hash table; prints one results table last. Run it from
# the repository's root:
#
#   benchmarks/gpu/run_table.sh [build] [test] [sanitize] [bench] [profile]
#
# Without arguments: build (if Bazel is installed), test, bench. "build" needs nvcc and
# leaves the programs in $BUILD_DIR (.build/gpu); the other steps need that folder and a
# GPU. Logs are written to it, or to $OUT.
set -u -o pipefail
cd "$(dirname "$0")/../.."
source benchmarks/gpu/programs.sh
build=${BUILD_DIR:-.build/gpu}
out=${OUT:-$build}
mkdir -p "$build" "$out"
steps=${*:-$(default_build) test bench}
has() { [[ " $steps " == *" $1 "* ]]; }
tests="table_set_test"
benches="table_find table_find_copy table_find_or_insert table_insert_and_evict"

if has build; then
  build_programs "$build" //benchmarks/gpu:table_find \
    //benchmarks/gpu:table_find_copy //benchmarks/gpu:table_find_or_insert \
    //benchmarks/gpu:table_insert_and_evict \
    //addons/hierarchical_parameter_server/cache/table:table_set_test_program || exit 1
fi
if [[ $steps != build ]]; then
  need_programs "$build" $tests $benches || exit 1
fi

if has test; then
  for t in $tests; do
    $build/$t 2>&1 | tee "$out/$t.log" || exit 1
  done
fi

if has sanitize; then
  for tool in memcheck racecheck synccheck; do
    echo "== $tool"
    for t in $tests; do
      timeout 200 compute-sanitizer --tool $tool --error-exitcode 9 \
        --report-api-errors no \
        $build/$t --small 2>&1 | tee "$out/$t.$tool.log" | tail -20 || exit 1
    done
  done
fi

# Time and bytes of each kernel of the first timed calls of a benchmark, which PROFILE
# names as PROGRAM or PROGRAM:ARGUMENT.
if has profile; then
  metrics=gpu__time_duration.sum,dram__bytes_read.sum,dram__bytes_write.sum
  metrics+=,sm__warps_active.avg.pct_of_peak_sustained_active
  for m in ${PROFILE:-table_find table_insert_and_evict}; do
    echo "== $m"
    name=${m%%:*}
    argument=${m#"$name"}
    timeout 150 ncu --clock-control none --profile-from-start off --csv \
      --launch-count ${COUNT:-8} --launch-skip ${SKIP:-0} \
      --metrics $metrics "$build/$name" ${argument:+"${argument#:}"} \
      >"$out/ncu_$name.csv" 2>&1
    python3 - "$out/ncu_$name.csv" <<'PYTHON'
import collections, csv, sys
lines = [l for l in open(sys.argv[1]) if l.startswith('"')]
rows = collections.OrderedDict()
for r in csv.DictReader(lines):
  name = r['Kernel Name'].split('(')[0][:44]
  rows.setdefault((r['ID'], name), {})[r['Metric Name']] = (
      r['Metric Value'] + ' ' + r['Metric Unit'])
for (i, name), m in rows.items():
  print(i, name, *[v for _, v in sorted(m.items())], sep=' | ')
PYTHON
  done
fi

if has bench; then
  nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
  git log -1 --format='commit %h' 2>/dev/null
  head="| what | us per call | G keys/s | goal | HierarchicalKV | touch limit |"
  {
    echo "$head"
    echo "| --- | --- | --- | --- | --- | --- |"
    for m in ${BENCHES:-$benches}; do
      $build/$m || exit 1
    done
  } | tee "$out/gpu_table.txt"
fi
