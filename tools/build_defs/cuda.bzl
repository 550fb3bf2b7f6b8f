# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Rules for the engine's CUDA code.

Where ./configure found no nvcc they define nothing: what could use a CUDA target
names it through if_cuda. An op library links no CUDA code. It loads a CUDA library
from its own folder when a GPU is first used, so only what has that library in its
data waits for nvcc. The CUDA runtime is linked as an archive and loads the driver
at its first call.
"""

load("@local_config_cuda//:config.bzl", "HAVE_CUDA", "NVCC")
load("//tools/build_defs:defs.bzl", "check_engine_deps", "engine_test")
load("//tools/pip_package:version.bzl", "VERSION")

_PRIVATE = ["//visibility:private"]

# Machine code for sm_80 and sm_90, and PTX for the driver to compile on newer GPUs. One
# pass of the compiler's front end is enough for code without __CUDA_ARCH__.
_ARCHS = ["-gencode=arch=compute_80,code=[sm_80,sm_90,compute_80]"]

# One compiler pass per architecture, for code that depends on it, such as CUB.
ARCHS_APART = [
    "-gencode=arch=compute_80,code=sm_80",
    "-gencode=arch=compute_90,code=sm_90",
    "-gencode=arch=compute_90,code=compute_90",
]

# Test programs contain only PTX, which the driver compiles for its GPU, to shorten the
# build.
_TEST_ARCHS = ["-gencode=arch=compute_80,code=compute_80"]

# No fused multiply-add: update rules round every operation (optimizer/rule.h).
_NVCC_FLAGS = [
    "-std=c++17",
    "-O3",
    "-fmad=false",
    "-DNDEBUG",
    "-Xcompiler=-O3,-fPIC,-fvisibility=hidden,-ffp-contract=off,-Wall,-Wno-unused-function",
]

def if_cuda(targets):
    """Returns targets, or [] in a build without CUDA."""
    return targets if HAVE_CUDA else []

def _objects_impl(ctx):
    contexts = [dep[CcInfo].compilation_context for dep in ctx.attr.deps]
    headers = depset(
        ctx.files.hdrs,
        transitive = [c.headers for c in contexts],
    )
    flags = ["-I."]
    for c in contexts:
        flags += ["-D" + d for d in c.defines.to_list()]
    objects = []
    for src in ctx.files.srcs:
        if src.extension in ["h", "cuh"]:
            continue
        stem = src.basename[:-len(src.extension) - 1]
        object = ctx.actions.declare_file("_objs/%s/%s.pic.o" % (ctx.label.name, stem))
        ctx.actions.run(
            executable = NVCC,
            arguments = _NVCC_FLAGS + ctx.attr.archs + flags +
                        ["-c", src.path, "-o", object.path],
            inputs = depset(ctx.files.srcs, transitive = [headers]),
            outputs = [object],
            mnemonic = "NvccCompile",
            progress_message = "Compiling %s with nvcc" % src.short_path,
            use_default_shell_env = True,
        )
        objects.append(object)
    return [DefaultInfo(files = depset(objects))]

_objects = rule(
    implementation = _objects_impl,
    attrs = {
        "archs": attr.string_list(),
        "deps": attr.label_list(providers = [CcInfo]),
        "hdrs": attr.label_list(allow_files = [".h", ".cuh"]),
        "srcs": attr.label_list(allow_files = [".cu", ".cc", ".h", ".cuh"]),
    },
)

def gpu_library(name, srcs = [], hdrs = [], deps = [], archs = _ARCHS, **kwargs):
    """Library of the engine whose sources nvcc compiles.

    Args:
      name: named for its header.
      srcs: .cu sources, .cc sources that call the CUDA runtime, private headers.
      hdrs: headers, .h and .cuh.
      deps: targets of //kernels/engine only.
      archs: nvcc's -gencode flags; ARCHS_APART for code that asks for its
        architecture.
      **kwargs: visibility, testonly, alwayslink.
    """
    check_engine_deps(name, deps)
    if not HAVE_CUDA:
        return
    testonly = kwargs.get("testonly", False)
    all_deps = deps + ["@local_config_tf//:abi", "@local_config_cuda//:cudart"]
    objects = []
    if srcs:
        _objects(
            name = name + "_objects",
            srcs = srcs,
            hdrs = hdrs,
            archs = archs,
            testonly = testonly,
            deps = all_deps,
        )
        objects = [":" + name + "_objects"]
    native.cc_library(
        name = name,
        srcs = objects,
        # A .cuh header cannot be parsed by a C++ compiler.
        textual_hdrs = hdrs,
        linkstatic = True,
        visibility = kwargs.pop("visibility", _PRIVATE),
        deps = all_deps,
        **kwargs
    )

def cuda_library(name, deps, visibility = _PRIVATE):
    """Shared library with the CUDA code of an op library.

    It exports the function of kernels/engine/base/gpu_library.h alone, has no
    search path, and needs no newer symbol of the system than manylinux2014 has.

    Args:
      name: file name, lib*_cuda.so; in the package of the op library.
      deps: gpu_library targets, and the engine_library with the function.
      visibility: private by default.
    """
    check_engine_deps(name, deps)
    if not HAVE_CUDA:
        return
    script = "//tools/build_defs:cuda_library.lds"
    native.cc_binary(
        name = name,
        additional_linker_inputs = [script],
        linkopts = [
            "-lpthread",
            "-ldl",
            "-lrt",
            "-Wl,--version-script=$(location %s)" % script,
            "-Wl,--no-undefined",
            "-Wl,--gc-sections",
        ],
        linkshared = True,
        linkstatic = True,
        visibility = visibility,
        deps = deps + ["//tools/build_defs:old_system"],
    )

def cuda_library_beside(name, library):
    """Copy of a CUDA library for a test program that loads it from its own folder.

    Args:
      name: its file name.
      library: the cuda_library.
    """
    if not HAVE_CUDA:
        return
    native.genrule(
        name = name + "_copy",
        testonly = True,
        srcs = [library],
        outs = [name],
        cmd = "cp $< $@",
    )

def _border_build_id_impl(ctx):
    header = ctx.actions.declare_file("build_id.h")
    arguments = ctx.actions.args()
    arguments.add_all([header.path, ctx.attr.version])
    arguments.add_all(ctx.attr.border[CcInfo].compilation_context.headers)
    ctx.actions.run_shell(
        command = """
            header="$1"; version="$2"; shift 2
            hash="$(cat "$@" | sha256sum | cut -c1-16)"
            cat > "$header" <<END
// Written by border_build_id (tools/build_defs/cuda.bzl).
#define EV_BUILD_ID_TEXT(abi) "$version-$hash-abi" #abi
#define EV_BUILD_ID_OF(abi) EV_BUILD_ID_TEXT(abi)
#define EV_BUILD_ID EV_BUILD_ID_OF(_GLIBCXX_USE_CXX11_ABI)
END
        """,
        arguments = [arguments],
        inputs = ctx.attr.border[CcInfo].compilation_context.headers,
        outputs = [header],
        mnemonic = "BorderBuildId",
    )
    return [DefaultInfo(files = depset([header]))]

_border_build_id = rule(
    implementation = _border_build_id_impl,
    attrs = {
        "border": attr.label(mandatory = True, providers = [CcInfo]),
        "version": attr.string(mandatory = True),
    },
)

def border_build_id(name, border):
    """Writes build_id.h, which defines EV_BUILD_ID for both sides of a border.

    EV_BUILD_ID is the version, a hash of all headers that the border includes, and the
    ABI of std::string. If it is equal, both sides agree on all types of the border.

    Args:
      name: the target.
      border: engine_library of the header that both sides include.
    """
    _border_build_id(name = name, border = border, version = VERSION)

def gpu_test(name, srcs, deps = [], tags = [], **kwargs):
    """GoogleTest that needs a GPU; without one its cases are skipped by name."""
    if not HAVE_CUDA:
        return
    engine_test(
        name = name,
        srcs = srcs,
        deps = deps,
        tags = tags + ["gpu"],
        **kwargs
    )

def _program(name, main, srcs, deps, archs, testonly, **kwargs):
    gpu_library(
        name = main,
        srcs = srcs,
        archs = archs,
        testonly = testonly,
        deps = deps,
    )
    native.cc_binary(
        name = name,
        testonly = testonly,
        linkopts = ["-lpthread", "-ldl", "-lrt"],
        linkstatic = True,
        deps = [":" + main],
        **kwargs
    )

def gpu_binary(name, srcs, deps = [], testonly = False, visibility = _PRIVATE):
    """Program compiled by nvcc, a benchmark for instance.

    It needs a driver, libc and libstdc++ on the machine that runs it.

    Args:
      name: the program's name.
      srcs: the .cu with main, and headers.
      deps: targets of //kernels/engine, and of the program's own package.
      testonly: as in Bazel.
      visibility: private by default.
    """
    if not HAVE_CUDA:
        return
    _program(
        name,
        name + "_main",
        srcs,
        deps,
        _ARCHS,
        testonly,
        visibility = visibility,
    )

def gpu_shared_library(name, srcs):
    """Shared library with the CUDA runtime in it, for tests on a machine with a GPU.

    Args:
      name: libNAME.so.
      srcs: .cc and .cu sources; exported functions are marked visible.
    """
    if not HAVE_CUDA:
        return
    main = name[:-len(".so")] + "_main"
    gpu_library(
        name = main,
        srcs = srcs,
        archs = _TEST_ARCHS,
        testonly = True,
        alwayslink = True,
    )
    native.cc_binary(
        name = name,
        testonly = True,
        linkopts = ["-lpthread", "-ldl", "-lrt"],
        linkshared = True,
        linkstatic = True,
        deps = [":" + main],
    )

def gpu_program_test(name, srcs, deps = [], **kwargs):
    """Test program compiled by nvcc that runs without a test library.

    It exits 0 when all is well and 77 without a GPU, which counts as skipped
    (kernels/engine/testing/exit_without_gpu.h).

    Args:
      name: stem_test; the program is name_program.
      srcs: the .cu with main, and headers.
      deps: targets of //kernels/engine.
      **kwargs: size and the like.
    """
    if not HAVE_CUDA:
        return
    _program(
        name + "_program",
        name + "_main",
        srcs,
        deps,
        _TEST_ARCHS,
        True,
        # Scripts in benchmarks/ copy the program to machines with a GPU.
        visibility = ["//benchmarks:__subpackages__"],
    )
    gpu_test(
        name = name,
        srcs = ["//kernels/engine/testing:gpu_program.cc"],
        args = ["$(location :%s_program)" % name],
        data = [":%s_program" % name],
        **kwargs
    )
