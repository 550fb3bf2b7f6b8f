// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// EvPublishCheckpoint makes files a checkpoint atomically and durably, whatever
// happens to the process or the machine.
//
// The atomic step is renaming the index, the file that readers look for. All
// files that it names are on the disk under their final names by then. An
// existing checkpoint of the same name prevents this, because its index and its
// data cannot be exchanged at once. So the new files first get the prefix
// <prefix>.commit, the index last. From then on they are the checkpoint, and
// any process may move them over the old ones (checkpoint_format/interrupted.py
// does so before it restores).

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include "kernels/tf/bridge/register_kernel.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/lib/io/path.h"
#include "tensorflow/core/platform/env.h"

namespace embedding_variable {
namespace {

using tensorflow::Env;
using tensorflow::OpKernel;
using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;
using tensorflow::Status;

// Remote file systems have their own rules of durability.
bool IsLocal(const std::string& path) {
  return path.find("://") == std::string::npos;
}

// Returns a path without "file://" and a host.
std::string WithoutFileScheme(const std::string& path) {
  static constexpr char kScheme[] = "file://";
  if (path.compare(0, std::strlen(kScheme), kScheme) != 0) return path;
  const size_t begin = path.find('/', std::strlen(kScheme));
  return begin == std::string::npos ? path : path.substr(begin);
}

std::string DirectoryOf(const std::string& path) {
  const std::string directory(tensorflow::io::Dirname(path));
  return directory.empty() ? "." : directory;
}

// Waits until a file's contents, or a directory's entries, are on the disk.
Status Sync(const std::string& path_or_uri) {
  const std::string path = WithoutFileScheme(path_or_uri);
  if (!IsLocal(path)) return Status();
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) {
    return tensorflow::errors::Internal("cannot open ", path, ": ",
                                        std::strerror(errno));
  }
  const bool synced = fsync(file) == 0 || errno == EINVAL || errno == EROFS;
  const int error = errno;
  close(file);
  if (synced) return Status();
  if (error == ENOSPC || error == EDQUOT) {
    return tensorflow::errors::ResourceExhausted("cannot write ", path, ": ",
                                                 std::strerror(error));
  }
  return tensorflow::errors::Internal("cannot write ", path, ": ",
                                      std::strerror(error));
}

// Syncs the entries of a directory's parents, which a save may have created. A
// parent that cannot be opened existed before.
void SyncParents(std::string directory) {
  directory = WithoutFileScheme(directory);
  while (IsLocal(directory)) {
    const std::string parent = DirectoryOf(directory);
    Sync(parent).IgnoreError();
    if (parent == directory || parent == "." || parent == "/") return;
    directory = parent;
  }
}

// Returns the suffixes of the data files of `prefix`: ".data-00000-of-00001".
Status DataSuffixes(const std::string& prefix,
                    std::vector<std::string>* suffixes) {
  std::vector<std::string> names;
  TF_RETURN_IF_ERROR(Env::Default()->GetChildren(DirectoryOf(prefix), &names));
  const std::string wanted =
      std::string(tensorflow::io::Basename(prefix)) + ".data-";
  const size_t length = wanted.size() + std::strlen("00000-of-00001");
  for (const std::string& name : names) {
    if (name.size() == length && name.compare(0, wanted.size(), wanted) == 0) {
      suffixes->push_back(name.substr(wanted.size() - std::strlen(".data-")));
    }
  }
  return Status();
}

// Renames the checkpoint's files, the index last.
Status Move(const std::string& from, const std::string& to) {
  Env* const env = Env::Default();
  std::vector<std::string> suffixes;
  TF_RETURN_IF_ERROR(DataSuffixes(from, &suffixes));
  for (const std::string& suffix : suffixes) {
    TF_RETURN_IF_ERROR(env->RenameFile(from + suffix, to + suffix));
  }
  TF_RETURN_IF_ERROR(Sync(DirectoryOf(to)));
  TF_RETURN_IF_ERROR(env->RenameFile(from + ".index", to + ".index"));
  return Sync(DirectoryOf(to));
}

Status Publish(const std::string& staged, const std::string& prefix) {
  Env* const env = Env::Default();
  const std::string commit = prefix + ".commit";
  if (env->FileExists(commit + ".index").ok()) {
    TF_RETURN_IF_ERROR(Move(commit, prefix));
  }
  std::vector<std::string> suffixes, leftovers;
  TF_RETURN_IF_ERROR(DataSuffixes(staged, &suffixes));
  for (const std::string& suffix : suffixes) {
    TF_RETURN_IF_ERROR(Sync(staged + suffix));
  }
  TF_RETURN_IF_ERROR(Sync(staged + ".index"));
  SyncParents(DirectoryOf(prefix));
  if (!env->FileExists(prefix + ".index").ok()) return Move(staged, prefix);
  TF_RETURN_IF_ERROR(DataSuffixes(commit, &leftovers));
  for (const std::string& suffix : leftovers) {
    TF_RETURN_IF_ERROR(env->DeleteFile(commit + suffix));
  }
  TF_RETURN_IF_ERROR(Move(staged, commit));
  return Move(commit, prefix);
}

class PublishCheckpointOp : public OpKernel {
 public:
  explicit PublishCheckpointOp(OpKernelConstruction* context)
      : OpKernel(context) {}

  void Compute(OpKernelContext* context) override {
    std::string paths[2];
    for (int i = 0; i < 2; ++i) {
      OP_REQUIRES(context, context->input(i).NumElements() == 1,
                  tensorflow::errors::InvalidArgument(
                      "a checkpoint's prefix: expected one string, got shape ",
                      context->input(i).shape().DebugString()));
      paths[i] = std::string(context->input(i).flat<tensorflow::tstring>()(0));
    }
    OP_REQUIRES(
        context,
        DirectoryOf(paths[0]) == DirectoryOf(paths[1]) && paths[0] != paths[1],
        tensorflow::errors::InvalidArgument(
            "a checkpoint must be staged in the directory of its final prefix, "
            "got ",
            paths[0], " for ", paths[1]));
    OP_REQUIRES_OK(context, Publish(paths[0], paths[1]));
  }
};

const RegisterKernel<PublishCheckpointOp> kPublishCheckpoint(
    "EvPublishCheckpoint", {"staged", "prefix"});

}  // namespace
}  // namespace embedding_variable
