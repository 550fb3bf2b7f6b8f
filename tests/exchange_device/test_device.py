# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Makes the package load the library with stand-ins for GPU and NCCL.

Import it before the package. As a program, it runs another program with the stand-ins:

  test_device.py PROGRAM [ARGUMENT]...
"""

import os

import stand_in

stand_in.use(os.path.dirname(os.path.abspath(__file__)))

if __name__ == "__main__":
  stand_in.run()
