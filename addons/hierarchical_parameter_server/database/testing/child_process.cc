// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "addons/hierarchical_parameter_server/database/testing/child_process.h"

#include <fcntl.h>
#include <ftw.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <random>

namespace hps {
namespace {

int RemoveOne(const char* path, const struct stat*, int, struct FTW*) {
  return remove(path);
}

bool IsFree(int port) {
  const int file = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in at;
  std::memset(&at, 0, sizeof(at));
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  at.sin_port = htons(static_cast<uint16_t>(port));
  const bool is_free =
      bind(file, reinterpret_cast<const sockaddr*>(&at), sizeof(at)) == 0;
  close(file);
  return is_free;
}

}  // namespace

bool ChildProcess::Start(const std::vector<std::string>& words,
                         const std::string& log) {
  std::vector<char*> arguments;
  for (const std::string& word : words) {
    arguments.push_back(const_cast<char*>(word.c_str()));
  }
  arguments.push_back(nullptr);
  pid_ = fork();
  if (pid_ != 0) return pid_ > 0;
  // Only functions that are allowed between fork and exec.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const int file = open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  dup2(file, STDOUT_FILENO);
  dup2(file, STDERR_FILENO);
  execvp(arguments[0], arguments.data());
  _exit(127);
}

bool ChildProcess::Fork(const std::function<int()>& run) {
  pid_ = fork();
  if (pid_ != 0) return pid_ > 0;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  _exit(run());
}

void ChildProcess::Kill() {
  if (pid_ <= 0) return;
  kill(pid_, SIGKILL);
  Wait();
}

void ChildProcess::Stop() { kill(pid_, SIGSTOP); }

void ChildProcess::Continue() { kill(pid_, SIGCONT); }

bool ChildProcess::IsRunning() {
  if (pid_ <= 0) return false;
  if (waitpid(pid_, nullptr, WNOHANG) == 0) return true;
  pid_ = -1;
  return false;
}

int ChildProcess::Wait() {
  if (pid_ <= 0) return -1;
  int how = 0;
  while (waitpid(pid_, &how, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  return WIFEXITED(how) ? WEXITSTATUS(how) : -1;
}

bool HasProgram(const std::string& name) {
  const char* found = getenv("PATH");
  std::string folders = found == nullptr ? "/usr/bin:/bin" : found;
  folders += ':';
  size_t begin = 0;
  for (size_t end; (end = folders.find(':', begin)) != std::string::npos;
       begin = end + 1) {
    const std::string path = folders.substr(begin, end - begin) + "/" + name;
    if (access(path.c_str(), X_OK) == 0) return true;
  }
  return false;
}

TemporaryFolder::TemporaryFolder() {
  // Not Bazel's own folder: a Unix socket's path has at most 107 characters.
  const char* found = getenv("TMPDIR");
  path_ = std::string(found == nullptr ? P_tmpdir : found) + "/hps_XXXXXX";
  if (mkdtemp(&path_[0]) == nullptr) abort();
}

TemporaryFolder::~TemporaryFolder() {
  nftw(path_.c_str(), RemoveOne, 16, FTW_DEPTH | FTW_PHYS);
}

int FreePort() {
  std::random_device random;
  for (;;) {
    // Below the range of ports that the system assigns.
    const int port = 10000 + static_cast<int>(random() % 20000);
    if (IsFree(port) && IsFree(port + 10000)) return port;
  }
}

}  // namespace hps
