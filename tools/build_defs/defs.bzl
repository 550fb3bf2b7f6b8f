# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""The rules that every BUILD file of this repository uses.

There are two kinds of targets. An engine target is C++17, depends only on other
engine targets (any other dependency is an error while loading), and has no
TensorFlow header on its include path. A tf target has TensorFlow's headers and its
language standard (C++14 for 1.15, C++17 for 2.x). Both are compiled in TensorFlow's ABI, so
that a std::string can be passed between them.

Targets are private by default; the visibility of a shared target lists the folders
that may use it. One table of the design defines which folder may use which, and
//tests/repo_rules checks includes and visibility lists against it.
"""

load(
    "@local_config_tf//:config.bzl",
    "TF_CXX_STANDARD",
    "TF_FRAMEWORK",
    "TF_MINOR_VERSION",
)

_PRIVATE = ["//visibility:private"]

_ABI = "@local_config_tf//:abi"

_TF_HEADERS = "@local_config_tf//:headers"

_GTEST = "@googletest//:gtest_main"

# TensorFlow's own wheel requires AVX. Contraction to fused multiply-add would
# make results depend on the compiler.
_COPTS = [
    "-O3",
    "-ffp-contract=off",
    "-fvisibility=hidden",
    "-fvisibility-inlines-hidden",
    "-Wall",
    "-Wextra",
    "-Wno-sign-compare",
    "-Wno-unused-parameter",
] + select({
    "//tools/build_defs:x86_64": ["-mavx"],
    "//conditions:default": [],
})

_ENGINE_COPTS = ["-std=c++17"] + _COPTS

# The code of tests, which compiles in half the time of -O3. The tested libraries
# keep -O3.
TEST_COPTS = ["-O1"]

# Flags of code with TensorFlow's headers.
TF_STANDARD = ["-std=" + TF_CXX_STANDARD]

# TensorFlow 2.21 deprecates names that 1.15 has no other for.
_TF_COPTS = TF_STANDARD + _COPTS + ["-Wno-deprecated-declarations"]

_LINKOPTS = ["-lpthread"]

# Generates an empty __init__.py for a test that depends on a part of a package without
# its __init__.py. A folder without one would be shadowed by the same package in
# site-packages, where a wheel may be installed.
_CREATE_INIT = 1

# Roots from which Python packages are imported, relative to the workspace.
_IMPORT_ROOTS = [
    "addons/hierarchical_parameter_server/python",
    "addons/hugectr/python",
    "addons/serving/python",
    "addons/sparse_operation_kit/python",
    "python",
]

# Packages with engine targets.
_ENGINE = (
    "//kernels/engine/",
    "//addons/sparse_operation_kit/cuda",
    "//addons/sparse_operation_kit/exchange",
    "//addons/hierarchical_parameter_server/",
    "//addons/hugectr/reader",
)

def check_engine_deps(name, deps):
    """Fails unless all of deps are engine targets."""
    for dep in deps:
        local = dep.startswith(":") or not dep.startswith("//") and not dep.startswith("@")
        if not local and not [e for e in _ENGINE if dep.startswith(e)]:
            fail("engine target %s may depend on %s only, got %s" %
                 (name, " and ".join(_ENGINE), dep))

def engine_library(
        name,
        srcs = [],
        hdrs = [],
        deps = [],
        visibility = _PRIVATE,
        **kwargs):
    """C++17 library of the engine, without framework and third-party code.

    Args:
      name: named for its header.
      srcs: sources.
      hdrs: headers, included by their path from the workspace.
      deps: targets of //kernels/engine only; anything else fails.
      visibility: private by default.
      **kwargs: testonly (sees gtest's headers), tags and the like.
    """
    check_engine_deps(name, deps)
    native.cc_library(
        name = name,
        srcs = srcs,
        hdrs = hdrs,
        copts = _ENGINE_COPTS + kwargs.pop("copts", []),
        linkopts = _LINKOPTS + kwargs.pop("linkopts", []),
        linkstatic = True,
        visibility = visibility,
        deps = deps + [_ABI] + ([_GTEST] if kwargs.get("testonly") else []),
        **kwargs
    )

def engine_test(name, srcs, deps = [], size = "small", tags = [], **kwargs):
    """GoogleTest of the engine; gtest and its main are linked in."""
    check_engine_deps(name, deps)
    native.cc_test(
        name = name,
        size = size,
        srcs = srcs,
        copts = _ENGINE_COPTS + TEST_COPTS + kwargs.pop("copts", []),
        linkopts = _LINKOPTS,
        linkstatic = True,
        tags = tags + ["engine"],
        deps = deps + [_ABI, _GTEST],
        **kwargs
    )

def engine_binary(name, srcs, deps = [], visibility = _PRIVATE, **kwargs):
    """Program of the engine, such as a benchmark."""
    check_engine_deps(name, deps)
    native.cc_binary(
        name = name,
        srcs = srcs,
        copts = _ENGINE_COPTS + kwargs.pop("copts", []),
        linkopts = _LINKOPTS,
        linkstatic = True,
        visibility = visibility,
        deps = deps + [_ABI],
        **kwargs
    )

# Sources of one compilation, at most. TensorFlow's headers alone take three to six seconds.
_SOURCES_TOGETHER = 8

def _together(name, srcs):
    """Returns generated sources that include several of srcs each."""
    count = (len(srcs) + _SOURCES_TOGETHER - 1) // _SOURCES_TOGETHER
    units = []
    for i in range(count):
        paths = [
            native.package_name() + "/" + src
            for src in srcs[len(srcs) * i // count:len(srcs) * (i + 1) // count]
        ]
        unit = "%s_%d" % (name, i + 1)
        native.genrule(
            name = unit,
            outs = [unit + ".cc"],
            cmd = "printf '#include \"%%s\"\\n' %s > $@" % " ".join(paths),
        )
        units.append(unit + ".cc")
    return units

def tf_library(
        name,
        srcs = [],
        hdrs = [],
        deps = [],
        visibility = _PRIVATE,
        alwayslink = True,
        **kwargs):
    """C++ library with TensorFlow's headers on its include path.

    It is linked as a whole (alwayslink) by default, because ops and kernels are
    reached only through their static initializers.

    Several sources are compiled together, so names in their unnamed namespaces must differ.
    """
    is_alone = len(srcs) < 2
    native.cc_library(
        name = name,
        srcs = srcs if is_alone else _together(name, srcs),
        hdrs = hdrs,
        textual_hdrs = [] if is_alone else srcs,
        alwayslink = alwayslink,
        copts = _TF_COPTS + kwargs.pop("copts", []),
        linkstatic = True,
        local_defines = ["NDEBUG"],
        visibility = visibility,
        deps = deps + [_TF_HEADERS],
        **kwargs
    )

def tf_op_library(name, deps, visibility = _PRIVATE, **kwargs):
    """Shared library for tf.load_op_library; exports no symbol.

    The process has already loaded TensorFlow's library, which is found by its
    soname, so the file has no search path. It needs no newer symbols of the
    system's libraries than manylinux2014 has.

    Args:
      name: file name, lib*.so.
      deps: tf_library targets.
      visibility: private by default.
      **kwargs: testonly.
    """
    script = "//tools/build_defs:op_library.lds"
    native.cc_binary(
        name = name,
        additional_linker_inputs = [script, TF_FRAMEWORK],
        linkopts = _LINKOPTS + [
            "-Wl,--version-script=$(location %s)" % script,
            "-Wl,--no-undefined",
            "-Wl,--gc-sections",
            "$(location %s)" % TF_FRAMEWORK,
        ],
        linkshared = True,
        linkstatic = True,
        visibility = visibility,
        deps = deps + ["//tools/build_defs:old_system"],
        **kwargs
    )

def plain_shared_library(
        name,
        srcs,
        soname,
        version_script,
        needs = [],
        deps = [],
        visibility = _PRIVATE,
        **kwargs):
    """C++17 shared library besides the op library; needs only the system's libraries.

    Args:
      name: file name, lib*.so.
      srcs: sources and headers.
      soname: the name that a program finds it by.
      version_script: the symbols that it exports.
      needs: plain_shared_library targets that it is linked to, by their soname.
      deps: engine_library targets, which become a part of it.
      visibility: private by default.
      **kwargs: testonly.
    """
    check_engine_deps(name, deps)
    native.cc_binary(
        name = name,
        srcs = srcs,
        additional_linker_inputs = [version_script] + needs,
        copts = _ENGINE_COPTS,
        linkopts = ["-ldl", "-lpthread"] + [
            "-Wl,--version-script=$(location %s)" % version_script,
            "-Wl,--no-undefined",
            "-Wl,-soname," + soname,
            "-Wl,--no-as-needed",
        ] + ["$(location %s)" % library for library in needs],
        linkshared = True,
        linkstatic = True,
        visibility = visibility,
        deps = deps + ["//tools/build_defs:old_system"],
        **kwargs
    )

def _import_root():
    package = native.package_name()
    for root in _IMPORT_ROOTS:
        if package == root:
            return ["."]
        if package.startswith(root + "/"):
            depth = len(package[len(root) + 1:].split("/"))
            return ["/".join([".."] * depth)]
    return []

def ev_py_library(
        name,
        srcs = [],
        deps = [],
        data = [],
        imports = None,
        visibility = _PRIVATE,
        **kwargs):
    """Python library; sets its import root (python/ or the addon's)."""
    native.py_library(
        name = name,
        srcs = srcs,
        data = data,
        imports = _import_root() if imports == None else imports,
        srcs_version = "PY3",
        visibility = visibility,
        deps = deps,
        **kwargs
    )

def ev_py_binary(
        name,
        srcs,
        main = None,
        deps = [],
        data = [],
        imports = None,
        visibility = _PRIVATE,
        legacy_create_init = _CREATE_INIT,
        **kwargs):
    """Python program, run by the interpreter that ./configure selected."""
    native.py_binary(
        name = name,
        srcs = srcs,
        main = main or srcs[0],
        data = data,
        imports = _import_root() if imports == None else imports,
        legacy_create_init = legacy_create_init,
        python_version = "PY3",
        visibility = visibility,
        deps = deps,
        **kwargs
    )

def ev_py_test(
        name,
        srcs,
        main = None,
        deps = [],
        data = [],
        imports = None,
        size = "small",
        tags = [],
        shard_count = None,
        **kwargs):
    """absl test.

    Args:
      name: stem_test.
      srcs: the test, and helpers if it has any.
      main: the test's file, srcs[0] by default.
      deps: ev_py_library targets.
      data: files that the test reads.
      imports: import roots besides the package's own.
      size: small (60 s), medium (300 s) or large (900 s).
      tags: "slow" leaves the test out of make check.
      shard_count: absl splits the cases over this many processes. Each of them imports
        TensorFlow: no gain on a machine whose processors are busy.
      **kwargs: args, env, flaky and the like.
    """
    native.py_test(
        name = name,
        size = size,
        srcs = srcs,
        main = main or srcs[0],
        data = data + ["@local_config_python//:installed_packages.txt"],
        imports = _import_root() if imports == None else imports,
        legacy_create_init = _CREATE_INIT,
        python_version = "PY3",
        shard_count = shard_count,
        tags = tags,
        deps = deps,
        **kwargs
    )

def ev_py_tests(name, tests, deps = [], data = [], size = "medium", **kwargs):
    """absl tests that share one import of TensorFlow.

    `name` runs them all, each in a process of its own. Each has a target of its own too,
    which //... leaves out.

    Args:
      name: of the target that runs them all.
      tests: names of tests, stem_test; the source of each is stem_test.py.
      deps: ev_py_library targets that one of them needs.
      data: files that one of them reads.
      size: of all together.
      **kwargs: as of ev_py_test.
    """
    for test in tests:
        ev_py_test(
            name = test,
            size = size,
            srcs = [test + ".py"],
            data = data,
            tags = ["manual"],
            deps = deps,
        )
    sources = [test + ".py" for test in tests]
    ev_py_test(
        name = name,
        size = size,
        srcs = ["//tools/testing:many_tests.py"],
        args = ["$(location %s)" % source for source in sources],
        data = data + sources,
        deps = deps + ["//tools/testing:preloaded"],
        **kwargs
    )

def tf2_py_tests(name, tests, **kwargs):
    """ev_py_tests that need TensorFlow 2.x. Defines nothing for TensorFlow 1.15.

    They run with 2.x's behavior, which `make test TF=2.15` disables for other tests.

    Args:
      name: as of ev_py_tests.
      tests: as of ev_py_tests.
      **kwargs: as of ev_py_tests.
    """
    if TF_MINOR_VERSION.startswith("1."):
        return
    ev_py_tests(name, tests, **kwargs)
