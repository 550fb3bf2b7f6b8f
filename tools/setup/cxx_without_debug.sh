#!/bin/bash
# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
#
# The C++ compiler for Horovod, whose CMake files pass -g. Compiling without debug
# information takes less time.

exec g++ "$@" -g0
