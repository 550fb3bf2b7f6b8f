#!/bin/bash
# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
#
# The C++ compiler for Horovod, whose CMake files ask for -g. Debug information takes two
# fifths of the time to compile.

exec g++ "$@" -g0
