#!/bin/bash
# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Builds the sparse step on the GPU, checks it and times it. Run from the
# repository's root on a machine with a GPU and nvcc:
#
#   benchmarks/gpu/run_step.sh [build] [test] [sanitize] [bench] [profile]
#
# No argument: build test bench. PROFILE: DIM:HOT:zipf|uniform of what is
# profiled. -fmad=false: the rules round every operation (optimizer/rule.h).
set -u -o pipefail
cd "$(dirname "$0")/../.."
build=${BUILD_DIR:-.build/gpu_step}
out=${OUT:-$build}
mkdir -p $build "$out"
nvcc=${NVCC:-nvcc}
arch=${GPU_ARCH:-"-gencode arch=compute_90,code=sm_90"}
flags="-std=c++17 -O3 -lineinfo -fmad=false -I. $arch ${EXTRA_FLAGS:-}"
sources="kernels/engine/base/gpu/cuda_error.cc
  kernels/engine/base/gpu/device_buffer.cc
  kernels/engine/base/gpu/growing_buffer.cc
  kernels/engine/storage/hbm/row_arena.cc
  $(ls kernels/engine/table/gpu/*.cu kernels/engine/embedding/gpu/*.cu | grep -v _test)"
mains="kernels/engine/embedding/gpu/sparse_step_test.cu benchmarks/gpu/step.cu
  benchmarks/gpu/step_grow.cu"
steps=${*:-build test bench}
has() { [[ " $steps " == *" $1 "* ]]; }
object() { echo "$build/$(basename "${1%.*}").o"; }

if has build; then
  printf '%s\n' $sources $mains | xargs -P "${JOBS:-$(nproc)}" -I{} sh -c \
    'o='$build'/$(basename {} | sed "s/\.[a-z]*$//").o
     if [ ! -e $o ] || [ -n "$(find kernels benchmarks -newer $o \
          \( -name "*.cu" -o -name "*.cuh" -o -name "*.h" -o -name "*.cc" \) \
          | head -1)" ]; then '"$nvcc $flags"' -c {} -o $o; fi' || exit 1
  objects=$(for s in $sources; do object "$s"; done)
  for m in $mains; do
    $nvcc $arch "$(object "$m")" $objects -o "$build/$(basename "${m%.*}")" \
      || exit 1
  done
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
