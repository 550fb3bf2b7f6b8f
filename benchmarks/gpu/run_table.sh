#!/bin/bash
# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Builds the GPU table, checks it and times it; prints one results table last.
# Run from the repository's root on a machine with a GPU and nvcc:
#
#   benchmarks/gpu/run_table.sh [build] [test] [sanitize] [bench] [profile]
#
# No argument: build test bench. Objects go to .build/gpu, logs there or to $OUT.
set -u -o pipefail
cd "$(dirname "$0")/../.."
build=${BUILD_DIR:-.build/gpu}
out=${OUT:-$build}
mkdir -p $build "$out"
nvcc=${NVCC:-nvcc}
arch=${GPU_ARCH:-"-gencode arch=compute_90,code=sm_90"}
flags="-std=c++17 -O3 -lineinfo -I. $arch ${EXTRA_FLAGS:-}"
sources="kernels/engine/base/gpu/cuda_error.cc
  kernels/engine/base/gpu/device_buffer.cc
  kernels/engine/base/gpu/growing_buffer.cc
  kernels/engine/table/gpu/find.cu kernels/engine/table/gpu/insert.cu
  kernels/engine/table/gpu/evict.cu kernels/engine/table/gpu/contest.cu
  kernels/engine/table/gpu/maintain.cu kernels/engine/table/gpu/grow.cu
  kernels/engine/table/gpu/table_set.cu"
mains="kernels/engine/table/gpu/table_set_test.cu
  kernels/engine/table/gpu/growth_test.cu
  benchmarks/gpu/table_find.cu benchmarks/gpu/table_find_copy.cu
  benchmarks/gpu/table_find_or_insert.cu
  benchmarks/gpu/table_insert_and_evict.cu benchmarks/gpu/table_grow.cu"
steps=${*:-build test bench}
has() { [[ " $steps " == *" $1 "* ]]; }

object() { echo "$build/$(basename "${1%.*}").o"; }

if has build; then
  pids=()
  for s in $sources $mains; do
    $nvcc $flags -c "$s" -o "$(object "$s")" & pids+=($!)
  done
  for p in "${pids[@]}"; do wait "$p" || exit 1; done
  objects=$(for s in $sources; do object "$s"; done)
  for m in $mains; do
    $nvcc $arch "$(object "$m")" $objects -o "$build/$(basename "${m%.*}")" \
      || exit 1
  done
fi

if has test; then
  for t in growth_test table_set_test; do
    $build/$t 2>&1 | tee "$out/$t.log" || exit 1
  done
fi

if has sanitize; then
  for tool in memcheck racecheck synccheck; do
    echo "== $tool"
    for t in growth_test table_set_test; do
      timeout 200 compute-sanitizer --tool $tool --error-exitcode 9 \
        --report-api-errors no \
        $build/$t --small 2>&1 | tee "$out/$t.$tool.log" | tail -20 || exit 1
    done
  done
fi

# Time and bytes of each kernel of the first timed calls of a benchmark, given as
# PROGRAM or PROGRAM:ARGUMENT in PROFILE.
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
    for m in ${BENCHES:-table_find table_find_copy table_find_or_insert \
      table_insert_and_evict table_grow}; do
      $build/$m || exit 1
    done
  } | tee "$out/gpu_table.txt"
fi
