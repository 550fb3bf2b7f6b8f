# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Bazel 4's native protobuf rules under the names that rules_proto gives them."""

ProtoInfo = ProtoInfo

def proto_library(**attrs):
    native.proto_library(**attrs)
